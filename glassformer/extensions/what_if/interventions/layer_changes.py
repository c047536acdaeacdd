"""Changes of heads and layers: zero, mean, temperature, skips, residuals, norms, embeddings, bits, dropout.

    softmax(scores / T): T below 1 sharpens, above 1 softens; T = 0 takes the best key; infinite T is uniform

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3, for heads set to 0; Wang et al.,
"Interpretability in the Wild" (2022), section 2, for a mean instead of an output; Guo et al., "On Calibration of Modern
Neural Networks" (2017), section 4.2, for a temperature in a softmax; Graves et al., "Neural Turing Machines" (2014),
section 3.3.1, for one that sharpens attention; Vaswani et al. (2017), section 3.2, which calls attention a weighted
look-up. For layers: Vaswani et al. (2017), sections 3.1, 3.3 and 3.4; He et al., "Deep Residual Learning" (2016), for
the stream; Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020), for the two places of a norm;
Fan et al., "Reducing Transformer Depth on Demand with Structured Dropout" (2020), section 3.1, for layers that are
skipped; Veit et al., "Residual Networks Behave Like Ensembles of Relatively Shallow Networks" (2016), section 4.1, who
take single blocks out of a trained network; Nagel et al., "A White Paper on Neural Network Quantization" (2021),
section 2.2, for symmetric rounding with a scale for each row; Srivastava et al., "Dropout" (2014), and Vaswani et al.
(2017), section 5.4, for dropout.

Shapes: B batch, H heads, Q queries, K keys, d d_head, O outputs, I inputs, T tokens, D d_model.
"""

import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Sublayer, anatomy
from transformer.model.config import MAX_LAYERS, MAX_WIDTH, ModelConfig
from transformer.model.feed_forward import unchanged
from transformer.model.module import widened
from transformer.model.taps import Hook, Replacer, Rewirer
from transformer.runs.interventions.base import Intervention, InterventionContext, InterventionError
from transformer.runs.interventions.fields import choice, number, place, whole
from transformer.runs.interventions.targets import (
    ALL,
    ANY_STACK,
    STACKS,
    AtPlace,
    HeadChange,
    LayerChange,
    PartChange,
    StackChange,
    UnderMask,
    open_cells,
    seen_keys,
)

LEAST: Final = 0.05
MOST: Final = 20.0


class ZeroHead(HeadChange):
    """One head writes nothing: its part of the joined heads is 0 before W_O."""

    layer: int = place(say("Layer"), MAX_LAYERS, what="layer")  # which one, from 0
    head: int = place(say("Head"), MAX_WIDTH, what="head")  # which one, from 0

    word = "zero"
    title = say("A head writes nothing")
    about = say("This head's part of the concatenated heads is set to 0 before W_O. Michel et al. (2019), section 2.3.")

    def told(self) -> str:
        return say("{head}: writes nothing", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        site = f"{self.where(ground.config)}.heads"
        return (AtPlace(site, lambda heads, _: torch.zeros_like(heads), head=self.head),)


class MeanHead(HeadChange):
    word = "mean"
    title = say("A head writes its mean output")
    about = say(
        "At every token, the head writes the mean of its output: over the source, or over the tokens that the "
        "decoder has read so far. Wang et al. (2022), section 2."
    )

    def told(self) -> str:
        return say("{head}: writes its mean output", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        where = self.where(ground.config)
        if self.attention(ground.config).stack == "encoder":
            return (UnderMask(where, "heads", _mean_of_all, head=self.head),)
        # Of a cache only the last token's output would be there, and not those before it.
        return (AtPlace(f"{where}.heads", _mean_so_far, head=self.head, causal=False),)


def _mean_of_all(heads: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] of a self-attention -> the mean over all tokens that are seen."""
    seen = seen_keys(mask, heads)[:, None, :, None].to(heads.dtype)  # [B, 1, Q, 1]
    mean = (heads * seen).sum(-2, keepdim=True) / seen.sum(-2, keepdim=True)  # [B, H, 1, d]
    return mean.expand_as(heads)


def _mean_so_far(heads: Tensor, offset: int) -> Tensor:
    """Outputs [B, H, Q, d] -> the mean over each token and those before it."""
    count = torch.arange(1, heads.size(-2) + 1, dtype=heads.dtype, device=heads.device)[:, None]  # [Q, 1]
    return heads.cumsum(-2) / count


class Uniform(HeadChange):
    word = "uniform"
    title = say("A head attends to all keys equally")
    about = say(
        "Every key that the query may see has the same weight, so the head writes the mean of these keys' values."
    )

    def told(self) -> str:
        return say("{head}: attends to all keys equally", head=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (UnderMask(self.where(ground.config), "weights", _alike, head=self.head),)


def _alike(weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> equal ones; a row without any open key stays as it is."""
    seen = open_cells(mask, weights)
    count = seen.sum(-1, keepdim=True)  # [B, H, Q, 1]
    return torch.where(count > 0, seen.to(weights.dtype) / count.clamp(min=1), weights)


class Temper(HeadChange, kw_only=True):
    # What its scores are divided by, 0.05 to 20; 0: all weight is on the best key.
    temperature: float = number(say("Temperature"), 0.0, MOST, 0.5)

    word = "temper"
    title = say("A head's attention is sharpened or softened")
    about = say(
        "The head's scores are divided by a temperature before the softmax. A temperature of 0 puts all weight on "
        "the best-matching key, like a look-up. Graves et al. (2014), section 3.3.1."
    )

    def agree(self) -> None:
        """A number between 0 and the least one would only overflow."""
        if 0.0 < self.temperature < LEAST:
            raise QueryError(
                "temperature: found {found:g}, expected 0, or a number from {least:g} to {most:g}.",
                found=self.temperature,
                least=LEAST,
                most=MOST,
            )

    def told(self) -> str:
        if self.temperature == 0.0:
            return say("{head}: all weight is on the best-matching key", head=self.name)
        return say("{head}: scores are divided by {temperature:g}", head=self.name, temperature=self.temperature)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        where = self.where(ground.config)
        if self.temperature == 0.0:
            return (UnderMask(where, "weights", _looked_up, head=self.head),)
        # Before the mask, whose fill values stay unchanged.
        return (AtPlace(f"{where}.scores", lambda scores, offset: scores / self.temperature, head=self.head),)


def _looked_up(weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> 1 at the open key with the most, the first of equals; a closed row is unchanged."""
    seen = open_cells(mask, weights)
    best = weights.masked_fill(~seen, -torch.inf).argmax(-1)  # [B, H, Q]
    found = F.one_hot(best, weights.size(-1)).to(weights.dtype)
    return torch.where(seen.any(-1, keepdim=True), found, weights)


# ------------------------------------------------------------------------------------------------ layers

SUBLAYERS: Final[dict[str, str]] = {
    ALL: say("All sub-layers"),
    "selfattn": say("Self-attention"),
    "crossattn": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}
NORMS: Final[dict[str, str]] = SUBLAYERS | {"final": say("The final norm")}
_NAMES: Final = {"selfattn": "self_attn", "crossattn": "cross_attn", "ffn": "ffn"}


class _OfSublayer(LayerChange):
    sublayer: str = choice(say("Sub-layer"), SUBLAYERS, ALL, target=True)

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if self.sublayer == "crossattn" and (
            "decoder" not in self.stacks(config) or "cross" not in anatomy(config).kinds
        ):
            raise InterventionError(
                "{change} names cross-attention, but this model has none in the chosen part.", change=str(self)
            )

    def around(self, config: ModelConfig) -> list[str]:
        return self.patterns(config, f"{_NAMES.get(self.sublayer, '*')}.around")


class NoResidual(_OfSublayer):
    word = "noresidual"
    title = say("No residual connection")
    about = say(
        "A sub-layer's output replaces the residual stream instead of being added to it, so a token's own vector "
        "is lost (He et al., 2016, section 3.1)."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        return None if config.residual else say("This model has no residual connections anyway.")

    def told(self) -> str:
        if self.sublayer == ALL:
            return say("{place}: no residual connections", place=self.name)
        return say(
            "{place}: no residual connection around {sublayer}", place=self.name, sublayer=_INSIDE[self.sublayer]
        )

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (Rewirer(dict.fromkeys(self.around(ground.config), partial(replace, adds=False))),)


_INSIDE: Final[dict[str, str]] = {
    "selfattn": say("self-attention"),
    "crossattn": say("cross-attention"),
    "ffn": say("feed-forward"),
}


class NoNorm(_OfSublayer):
    # The norms around which sub-layer, or the final norm, or all of these; a final norm has no layer.
    sublayer: str = choice(say("Norm"), NORMS, ALL, target=True)

    word = "nonorm"
    title = say("No norm")
    about = say(
        "Vectors pass through unchanged: they are neither normalised nor scaled by learned parameters. If you "
        "choose all norms of all layers, the final norm is also removed, and so is the norm of the embedding if "
        "there is one."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        return say("This model has no norms anyway.") if config.norm_kind == "none" else None

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        if self.sublayer == "final" and not config.final_norm:
            raise InterventionError("{change} names the final norm, but this model has none.", change=str(self))
        if self.sublayer == "final" and self.layer is not None:
            raise InterventionError(
                "{change} names a layer for the final norm, but the final norm comes after all layers.",
                change=str(self),
            )

    def told(self) -> str:
        if self.sublayer == "final":
            return say("{stack}: no final norm", stack=ANY_STACK[self.stack])
        if self.sublayer == ALL:
            return say("{place}: no norms", place=self.name)
        return say("{place}: no norm around {sublayer}", place=self.name, sublayer=_INSIDE[self.sublayer])

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        config, changes = ground.config, dict[str, Callable[[Any], Any]]()
        if self.sublayer != "final":
            changes = dict.fromkeys(self.around(config), partial(replace, norms=False))
        if self.sublayer == "final" or (self.sublayer == ALL and self.layer is None):
            names = ["final_norm"] if self.sublayer == "final" else ["final_norm", "embedding.norm"]
            changes |= {f"{one}.{name}": lambda norm: unchanged for one in self.stacks(config) for name in names}
        return (Rewirer(changes),)


class SwapNorms(StackChange):
    word = "swapnorms"
    title = say("Pre-norm and post-norm swapped")
    about = say(
        "Pre-norm becomes post-norm, or the other way round. The same happens when trained weights are loaded into "
        "a program written for the other kind. A final norm stays, but none is added (Xiong et al., 2020, section "
        "3)."
    )

    @classmethod
    def unfit(cls, config: ModelConfig) -> Sentence | None:
        if config.norm_kind == "none":
            return say("This model has no norms anyway.")
        if config.norm == "both":
            return say(
                "This model already has norms both before and after its sub-layers, so there is no other place for "
                "them."
            )
        if config.parallel_residual:
            return say(
                "In each layer of this model, both sub-layers read the same vectors, so there is no sum between "
                "the two where a norm could go."
            )
        return None

    def told(self) -> str:
        return say("{stack}: pre-norm and post-norm swapped", stack=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        places = [f"{one}.*.around" for one in self.stacks(ground.config)]
        return (Rewirer(dict.fromkeys(places, lambda around: replace(around, post=not around.post))),)


class NoFeedForward(LayerChange):
    word = "noffn"
    title = say("No feed-forward")
    about = say(
        "The output of the feed-forward network is set to 0, including its bias. Norms and the residual stream "
        "stay unchanged. Vaswani et al. (2017), section 3.3."
    )

    def told(self) -> str:
        return say("{place}: feed-forward writes nothing", place=self.name)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (Replacer(dict.fromkeys(self.patterns(ground.config, "ffn.output"), torch.zeros_like), causal=True),)


class EmbeddingScale(StackChange):
    by: float = number(say("Factor"), 0, MAX_WIDTH, 1)  # the number

    word = "embed"
    title = say("Another embedding scale")
    about = say(
        "Token embeddings are multiplied by this number before positions are added: by √d_model in Vaswani et al. "
        "(2017), section 3.4, or by 1 in models without a scale. If the number is too large, the tokens drown out "
        "the positions; if it is too small, the positions drown out the tokens."
    )

    def told(self) -> str:
        return say("{stack}: token embeddings times {factor:g}", stack=self.name, factor=self.by)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (Rewirer({f"{one}.embedding.scale": lambda scale: self.by for one in self.stacks(ground.config)}),)


PARTS: Final[dict[str, str]] = {
    "whole": say("The whole layer"),
    "self": say("Self-attention"),
    "cross": say("Cross-attention"),
    "ffn": say("Feed-forward"),
}
_SKIPPED: Final[dict[str, Sublayer]] = {"self": "self_attn", "cross": "cross_attn", "ffn": "ffn"}


class Skip(PartChange):
    part: str = choice(say("Skipped part"), PARTS, "whole", target=True)  # which sub-layer, or the whole layer

    word = "skip"
    title = say("A layer or a sub-layer is skipped")
    about = say(
        "The stream bypasses the skipped part unchanged, and the norm of that part is skipped, too. Veit et al. "
        "(2016), section 4.1."
    )

    @property
    def sublayer(self) -> Sublayer | None:
        return _SKIPPED.get(self.part)

    def told(self) -> str:
        stack = STACKS[self.stack]
        place = say("{stack}, every layer", stack=stack)
        if self.layer is not None:
            place = say("{stack}, layer {layer}", stack=stack, layer=self.layer + 1)
        if self.part == "whole":
            return say("{place}: skipped", place=place)
        return say("{place}: {part} is skipped", place=place, part=PARTS[self.part])

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        layer = "*" if self.layer is None else str(self.layer)
        names = anatomy(ground.config).stack(self.stack).sublayers
        parts = names if self.sublayer is None else (self.sublayer,)
        return (Rewirer({f"{self.stack}.{layer}.{part}.around": partial(replace, skips=True) for part in parts}),)


WIDTHS: Final = (8, 7, 6, 5, 4, 3, 2)
"""Bits of a weight."""
MOST_KEPT: Final = 2**28  # bytes of rounded matrices that a run caches between steps


class RoundWeights(Intervention):
    # How many of them each weight has.
    bits: str = choice(say("Bits"), {str(n): say("{n} bits", n=n) for n in WIDTHS}, "8")

    word = "bits"
    swept = "bits"
    group = "layers"
    title = say("Weights rounded to a few bits")
    about = say(
        "In each row of a matrix or embedding table, numbers are rounded to whole multiples of 1/127 of the row's "
        "largest absolute value (1/7 with 4 bits, 1 with 2); norms and biases stay unchanged (Nagel et al., 2021, "
        "section 2.2)."
    )

    def told(self) -> str:
        return say("All weights are rounded to {n} bits", n=self.bits)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        """Rounds matrices when they are used, and the rows of a table that are read: each row has its own scale."""
        rounding = partial(rounded, bits=int(self.bits))
        kept = once(rounding)
        matrices = Rewirer({"*proj.weight": kept, "output_weight": kept, "*.joined": lambda joined: None})
        tables = ["tokens", "types", *["positions"] * (ground.config.positions == "learned")]
        return matrices, Replacer({f"*.embedding.{name}": rounding for name in tables}, causal=True)


def rounded(rows: Tensor, *, bits: int) -> Tensor:
    """Rows [..., O, I], each rounded to multiples of its own scale, at most 2^(bits - 1) - 1 times it."""
    most = 2 ** (bits - 1) - 1
    rows = widened(rows)
    scale = rows.abs().amax(dim=-1, keepdim=True) / most
    return (rows / scale.masked_fill(scale == 0, 1.0)).round() * scale


def once(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Cache the results of a change for tensors that come again."""
    kept: dict[int, tuple[Tensor, Tensor]] = {}  # what was changed is kept, too: its id stays its own
    room = MOST_KEPT

    def changed(value: Tensor) -> Tensor:
        nonlocal room
        if id(value) in kept:
            return kept[id(value)][1]
        found = change(value)
        if found.nbytes <= room:
            room -= found.nbytes
            kept[id(value)] = value, found
        return found

    return changed


_BLOCK: Final = 32  # places whose numbers are drawn at once


class KeepDropout(Intervention):
    rate: float = number(say("Rate"), 0, 0.9, 0.1)  # the probability of dropping each
    # A token's drops depend only on the seed, the site and its position, so they are the same for any way of computing.
    seed: int = whole(say("Seed"), 0, 2**31 - 1, 0)

    word = "dropout"
    group = "layers"
    title = say("Dropout as in training")
    about = say(
        "In the sum of embeddings and positions, and in every sub-layer's output, numbers are set to 0 at random. "
        "The rest are divided by 1 minus the rate, as in training. The effect is as if dropout had not been "
        "switched off (Srivastava et al., 2014; Vaswani et al., 2017, section 5.4)."
    )

    def told(self) -> str:
        return say("Dropout of {rate:g} as in training, seed {seed}", rate=self.rate, seed=self.seed)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        output = "output_norm" if ground.config.norm == "both" else "output"
        found = []
        for stack in anatomy(ground.config).stacks:
            names = [f"{layer}.{sub}.{output}" for layer in range(stack.n_layers) for sub in stack.sublayers]
            found += [f"{stack.name}.{name}" for name in ("embedding.output", *names)]
        return tuple(AtPlace(site, _Drop(site, self.rate, self.seed)) for site in found)


class _Drop:
    """Drops at one site; remembers what it drew for the run."""

    def __init__(self, site: str, rate: float, seed: int) -> None:
        self._site, self._rate, self._seed = site, rate, seed
        self._kept: dict[int, Tensor] = {}

    def __call__(self, value: Tensor, offset: int) -> Tensor:
        """[B, T, D] -> the same; its first token has this place."""
        first, end = offset // _BLOCK, (offset + value.size(-2) - 1) // _BLOCK + 1
        for block in range(first, end):
            if block not in self._kept:
                self._kept[block] = drawn(self._site, block, value.size(-1), self._seed) >= self._rate
        kept = torch.cat([self._kept[block] for block in range(first, end)])
        begin = offset - first * _BLOCK
        return value * kept[begin : begin + value.size(-2)].to(value) / (1 - self._rate)


def drawn(site: str, block: int, width: int, seed: int) -> Tensor:
    """Numbers from 0 to 1 for 32 places of a site, from place 32 times the block's number on, [32, width]."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{seed} {site} {block}".encode()))
    return torch.rand(_BLOCK, width, dtype=torch.float64, generator=generator)
