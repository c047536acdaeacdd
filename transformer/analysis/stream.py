"""Residual stream: where it can be read, its size and direction by depth, what sub-layers add, each norm.

The stream begins as embedding plus position. Every sub-layer adds its output to it. In a pre-norm model nothing else
happens to it until the final norm; in a post-norm model a norm follows each sum, and the stream is its output. If
each sub-layer has two norms, it adds its output after the second. All numbers are computed in float64 from what one
pass recorded in float32.

Source: Vaswani et al. (2017), section 3.1; Xiong et al. (2020) for pre-norm; Ba et al., "Layer Normalization" (2016).

Shapes: P places, U sub-layers, T tokens, D d_model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from transformer.i18n import say
from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from transformer.model.norms import Norm
from transformer.model.transformer import Transformer

Part = Literal["embedding", "self_attn", "cross_attn", "ffn", "final"]

_NAMES: dict[Part, tuple[str, str]] = {
    "embedding": (say("embedding"), say("the embedding")),
    "self_attn": (say("self", about="a sub-layer, on an axis"), say("self-attention")),
    "cross_attn": (say("cross", about="a sub-layer, on an axis"), say("cross-attention")),
    "ffn": (say("FFN"), say("feed-forward")),
    "final": (say("final norm"), say("the final norm")),
}


@dataclass(frozen=True)
class StreamPlace:
    """A place where the stream can be read: after a part of the model."""

    part: Part  # what it is after
    layer: int | None  # of which layer, from 0; None for the embedding and the final norm
    site: str  # the site of `transformer.model.sites.SITES` that has the stream there

    @property
    def short(self) -> str:
        """Its name on an axis: "embedding", "2 cross"."""
        name = _NAMES[self.part][0]
        return name if self.layer is None else say("{layer} {part}", layer=self.layer + 1, part=name)

    @property
    def name(self) -> str:
        """Its name in a sentence: "the embedding", "layer 2's cross-attention"."""
        name = _NAMES[self.part][1]
        return name if self.layer is None else say("layer {layer}'s {part}", layer=self.layer + 1, part=name)

    @property
    def ends_layer(self) -> bool:
        """Whether it is the last place of its layer; the embedding counts as layer 0."""
        return self.part in ("embedding", "ffn")


def places(config: ModelConfig, stack: StackName) -> tuple[StreamPlace, ...]:
    """The places where the stream of a stack can be read, in the order of the computation [P]."""
    parts = anatomy(config).stack(stack)
    after = "norm" if config.norm == "post" else "residual"
    found = [StreamPlace("embedding", None, f"{stack}.embedding.output")]
    found += [
        StreamPlace(part, layer, f"{stack}.{layer}.{part}.{after}")
        for layer in range(parts.n_layers)
        for part in parts.sublayers
    ]
    return (*found, *([StreamPlace("final", None, f"{stack}.output")] if config.final_norm else []))


def sublayers(config: ModelConfig, stack: StackName) -> tuple[StreamPlace, ...]:
    """The places after a sub-layer [U]."""
    return tuple(place for place in places(config, stack) if place.layer is not None)


def sites(config: ModelConfig, stack: StackName) -> tuple[str, ...]:
    """The sites that `measure` and `normed` need, for `transformer.runs.running.replay`."""
    needed = [place.site for place in places(config, stack)]
    for place in sublayers(config, stack):
        needed += [f"{_prefix(place)}.{name}" for name in ("norm", _added(config), "residual")]
    return tuple(dict.fromkeys(needed))


def _added(config: ModelConfig) -> str:
    """The site of what a sub-layer adds to the stream."""
    return "output_norm" if config.norm == "both" else "output"


def _prefix(place: StreamPlace) -> str:
    return place.site.rpartition(".")[0]


# ------------------------------------------------------------------------------------------- sizes and directions


@dataclass(frozen=True, eq=False)
class Stream:
    """The size and direction of each token's stream by depth, and what was added to it.

    Sizes are root mean squares, sqrt(sum x_j^2 / D), in the model's own units; cosines are -1 to 1, and 0 if a
    vector is 0.
    """

    places: tuple[StreamPlace, ...]  # where [P]
    size: np.ndarray  # of the stream [P, T]
    kept: np.ndarray  # cosine of the stream with what it began as, the token's embedding plus position [P, T]
    sublayers: tuple[StreamPlace, ...]  # what adds [U]
    before: np.ndarray  # size of the stream that a sub-layer adds to [U, T]
    added: np.ndarray  # size of what it adds [U, T]
    aligned: np.ndarray  # cosine of what it adds with the stream that it adds to [U, T]


def measure(recorded: Mapping[str, np.ndarray], config: ModelConfig, stack: StackName, *, n_tokens: int) -> Stream:
    """Measure the stream of the first tokens; `recorded` has the values of `sites`, without a batch axis."""
    where, adding = places(config, stack), sublayers(config, stack)

    def at(site: str) -> np.ndarray:
        return recorded[site][:n_tokens].astype(np.float64)  # [T, D]

    start = at(where[0].site)
    streams = [at(place.site) for place in where]
    outputs = [at(f"{_prefix(place)}.{_added(config)}") for place in adding]
    pairs = list(zip(streams, outputs, strict=False))  # a sub-layer adds to the stream at the place before it
    return Stream(
        places=where,
        size=np.stack([rms(stream) for stream in streams]),
        kept=np.stack([cosine(stream, start) for stream in streams]),
        sublayers=adding,
        before=np.stack([rms(stream) for stream, _ in pairs]),
        added=np.stack([rms(output) for _, output in pairs]),
        aligned=np.stack([cosine(output, stream) for stream, output in pairs]),
    )


def rms(vectors: np.ndarray) -> np.ndarray:
    """Root mean square of each vector [..., D] -> [...]: how large a typical value of it is."""
    return np.asarray(np.sqrt((vectors.astype(np.float64) ** 2).mean(axis=-1)))


def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Cosine of the angle between vectors [..., D] -> [...]; 0 if one of them is 0."""
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return np.asarray(np.divide((one * other).sum(axis=-1), lengths, out=np.zeros_like(lengths), where=lengths != 0))


# ------------------------------------------------------------------------------------------------------ the norms


@dataclass(frozen=True, eq=False)
class Normed:
    """One norm, token by token: y = γ (x - centre) / size + β, over the numbers of one token.

    For a layer norm these are the mean μ and sqrt(σ² + ε); `transformer.model.norms` has those of other norms.
    """

    before: np.ndarray  # x, what the norm read [T, D]
    standardised: np.ndarray  # (x - centre) / size [T, D]
    after: np.ndarray  # y, what the model went on with [T, D]
    mean_before: np.ndarray  # mean μ and standard deviation σ of x [T]
    deviation_before: np.ndarray  # mean μ and standard deviation σ of x [T]
    mean_after: np.ndarray  # the same of y [T]
    deviation_after: np.ndarray  # the same of y [T]
    gamma: np.ndarray  # γ [D]
    beta: np.ndarray  # β, 0 if the norm has none [D]
    difference: float  # the largest distance of y from the formula


def norm_places(config: ModelConfig, stack: StackName) -> tuple[StreamPlace, ...]:
    """The norms of a stack by sub-layer (the one before it, if there are two); the final norm comes last."""
    return places(config, stack)[1:]


def normed(
    recorded: Mapping[str, np.ndarray], model: Transformer, stack: StackName, place: StreamPlace, *, n_tokens: int
) -> Normed:
    """Input and output of a norm, one of `norm_places`, for the first tokens; `recorded` is as in `measure`."""
    read, written = _around(model.config, stack, place)
    before, after = (recorded[site][:n_tokens].astype(np.float64) for site in (read, written))  # [T, D]
    module = _module(model, stack, place)
    gamma = module.weight.double().numpy(force=True)
    beta = np.zeros_like(gamma) if module.bias is None else module.bias.double().numpy(force=True)
    read_by_it = torch.tensor(before)
    standardised = ((read_by_it - module.centre(read_by_it)) / module.size(read_by_it)).numpy()
    return Normed(
        before=before,
        standardised=standardised,
        after=after,
        mean_before=before.mean(axis=1),
        deviation_before=before.std(axis=1),
        mean_after=after.mean(axis=1),
        deviation_after=after.std(axis=1),
        gamma=gamma,
        beta=beta,
        difference=float(np.abs(standardised * gamma + beta - after).max(initial=0.0)),
    )


def _around(config: ModelConfig, stack: StackName, place: StreamPlace) -> tuple[str, str]:
    """The sites before and after a norm."""
    if place.layer is not None and config.norm == "post":
        return f"{_prefix(place)}.residual", f"{_prefix(place)}.norm"
    where = places(config, stack)
    back = 2 if config.parallel_residual and place.part == "ffn" else 1  # it reads what its layer's attention reads
    before = where[where.index(place) - back].site
    return before, place.site if place.layer is None else f"{_prefix(place)}.norm"


def _module(model: Transformer, stack: StackName, place: StreamPlace) -> Norm:
    owner = model.stack(stack)
    if place.layer is None:
        found = owner.final_norm
    else:
        found = getattr(owner.layers[place.layer], f"{place.part}_residual").norm
    assert isinstance(found, Norm)
    return found
