"""Copy from another run: a head's map, or the values of any site (activation patching).

The other run is the same model, unchanged, on another sentence, decoded greedily. Maps over the source can be copied
only from a sentence with as many tokens. Of all else, the part that both runs have is copied, and the rest stays.

Source: Vig et al., "Investigating Gender Bias in Language Models Using Causal Mediation Analysis" (2020), section 3;
Meng et al., "Locating and Editing Factual Associations in GPT" (2022), section 2.1.

Shapes: B batch, H heads, Q queries, K keys.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import StackName, Sublayer, anatomy
from transformer.model.config import MAX_LENGTH, ModelConfig
from transformer.model.sites import sites
from transformer.model.taps import Visitor
from transformer.runs.interventions.base import ChangeError, Ground, Intervention, Other
from transformer.runs.interventions.spelling import choice, place, text
from transformer.runs.interventions.where import (
    STACKS,
    AtPlace,
    HeadChange,
    PartChange,
    UnderMask,
    check_read,
    check_readable,
    seen_keys,
)

Values = Callable[[], dict[str, Tensor]]


def taken(ground: Ground, source: str, wanted: Sequence[str]) -> Values:
    """Returns sites of the other run, which is made once, when first needed; a ChangeError if that is impossible."""

    @cache
    def values() -> dict[str, Tensor]:
        try:
            other: Other = ground.other(source, wanted)
        except QueryError as error:
            raise ChangeError(
                "the other sentence that a change uses cannot be read: {problem}", problem=error.sentence
            ) from None
        return {site: value.clone() for site, value in other.values.items()}

    return values


def check_like(change: Intervention, other: Tensor, here: Tensor) -> None:
    """Check that another run's values [1, ..., tokens, width] have as many heads as these, or raise an error."""
    if other.shape[1:-2] != here.shape[1:-2]:
        raise ChangeError(
            "{change} takes {there} heads from a run of the unchanged model, but this run has {here} heads. Remove "
            "the change to the number of heads.",
            change=str(change),
            there=other.size(1),
            here=here.size(1),
        )


class CopyMap(HeadChange, kw_only=True):
    text: str = text(say("Other sentence"))  # the other sentence

    word = "copy"
    group = "rows"
    title = say("A head's map is taken from another sentence")
    about = say(
        "For an attention map over the source, the other sentence must have the same number of tokens as the "
        "source. Decoder rows that the other run does not have stay unchanged. Vig et al. (2020), section 3."
    )

    def told(self) -> str:
        return say("{head}: map taken from “{text}”", head=self.name, text=self.text)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        one = self.attention(ground.config)
        layers = range(one.n_layers) if self.layer is None else (self.layer,)
        sites = {one.place(layer): one.site(layer, "weights") for layer in layers}
        copied = partial(self._copied, taken(ground, self.text, list(sites.values())))
        return tuple(
            UnderMask(place, "weights", partial(copied, site), head=self.head) for place, site in sites.items()
        )

    def _copied(self, values: Values, site: str, weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
        """Weights [B, H, Q, K]: over the source's tokens there are as many as in the other map."""
        other = values()[site].to(weights)  # [1, H, rows, keys]
        if self.kind != "decoder":  # whose rows see as many of its own tokens in both runs
            self._check_keys(other.size(-1), weights, mask)
        check_like(self, other, weights)
        n_rows = min(weights.size(-2), other.size(-2) - offset)
        if n_rows <= 0:
            return weights
        n_keys = min(weights.size(-1), other.size(-1))
        changed = weights.clone()
        changed[:, :, :n_rows] = 0.0
        changed[:, :, :n_rows, :n_keys] = other[:, :, offset : offset + n_rows, :n_keys]
        return changed

    def _check_keys(self, n_keys: int, weights: Tensor, mask: Tensor | None) -> None:
        here = torch.tensor([weights.size(-1)]) if mask is None else seen_keys(mask, weights.mT).sum(-1)  # [B]
        wrong = [n for n in here.tolist() if n != n_keys]
        if wrong:
            raise ChangeError(
                "{change} takes an attention map over {there} tokens, but this source has {here}. Choose a "
                "sentence with the same number of tokens.",
                change=str(self),
                there=n_keys,
                here=wrong[0],
            )


_ATTENTION: Final = {
    "norm": say("norm", about="a patched value"),
    "queries": say("queries", about="a patched value"),
    "keys": say("keys", about="a patched value"),
    "values": say("values", about="a patched value"),
    "heads": say("heads", about="a patched value"),
    "output": say("output", about="a patched value"),
    "residual": say("stream after it", about="a patched value"),
}
_FEED_FORWARD: Final = {
    "norm": say("norm", about="a patched value"),
    "activation": say("hidden neurons", about="a patched value"),
    "output": say("output", about="a patched value"),
    "residual": say("stream after it", about="a patched value"),
}
_SUBLAYERS: Final[dict[str, tuple[Sublayer, Sentence, dict[str, Sentence]]]] = {
    "self": ("self_attn", say("Self-attention"), _ATTENTION),
    "cross": ("cross_attn", say("Cross-attention"), _ATTENTION),
    "ffn": ("ffn", say("Feed-forward"), _FEED_FORWARD),
}
_OF_STACK: Final = {"tokens": "embedding.tokens", "embedding": "embedding.output", "final": "output"}
"""What a stack has once, and not in each layer."""

PATCHED: Final[dict[str, str]] = {
    "layer": say("Stream after the layer"),
    **{
        part + name: say("{part}: {value}", part=label, value=value)
        for part, (_, label, names) in _SUBLAYERS.items()
        for name, value in names.items()
    },
    "tokens": say("Token embeddings"),
    "embedding": say("Embedding, positions added"),
    "final": say("Output of the stack"),
}
"""What can be taken from another run: all values of tokens that every model has."""


def _site(stack: StackName, layer: int, what: str) -> str:
    if what in _OF_STACK:
        return f"{stack}.{_OF_STACK[what]}"
    if what == "layer":
        return f"{stack}.{layer}.output"
    part = next(part for part in _SUBLAYERS if what.startswith(part))
    return f"{stack}.{layer}.{_SUBLAYERS[part][0]}.{what.removeprefix(part)}"


class Patch(PartChange, kw_only=True):
    value: str = choice(say("Value"), PATCHED, "layer", target=True)  # which value, a key of `PATCHED`
    # Of which token, from 0; None: of all that both runs have.
    token: int | None = place(say("Token"), MAX_LENGTH, what="query", optional=True)
    text: str = text(say("Other sentence"))  # the other sentence

    word = "patch"
    group = "rows"
    title = say("Vectors are taken from another sentence")
    about = say(
        "Activation patching: for all tokens that both runs have, the vectors come from the other run. Everything "
        "else stays unchanged. Meng et al. (2022), section 2.1."
    )

    def agree(self) -> None:
        if self.value in _OF_STACK and self.layer is not None:
            raise QueryError(
                "{value} does not belong to a single layer; choose all layers instead of layer {layer}.",
                value=PATCHED[self.value],
                layer=self.layer + 1,
            )

    @property
    def sublayer(self) -> Sublayer | None:
        return next((name for part, (name, *_) in _SUBLAYERS.items() if self.value.startswith(part)), None)

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        check_readable(self, self.token, config)

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        if self.stack == "encoder" or self.value in ("crosskeys", "crossvalues"):  # the source's
            check_read(self, self.token, ids)

    def told(self) -> str:
        what = say("{stack}, {value}", stack=STACKS[self.stack], value=PATCHED[self.value])
        if self.layer is not None:
            what = say("{stack}, layer {layer}, {value}", stack=STACKS[self.stack], layer=self.layer + 1,
                       value=PATCHED[self.value])  # fmt: skip
        if self.token is None:
            return say("{what}: taken from “{text}”", what=what, text=self.text)
        return say("{what}, token {token}: taken from “{text}”", what=what, token=self.token + 1, text=self.text)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        n_layers = anatomy(ground.config).stack(self.stack).n_layers
        layers = range(n_layers) if self.layer is None else (self.layer,)
        has = sites(ground.config)
        wanted = [
            site for site in dict.fromkeys(_site(self.stack, layer, self.value) for layer in layers) if site in has
        ]
        values = taken(ground, self.text, wanted)
        return tuple(AtPlace(site, partial(self._patched, values, site)) for site in wanted)

    def _patched(self, values: Values, site: str, value: Tensor, offset: int) -> Tensor:
        """Values whose last axis but one is of tokens, from `offset` on."""
        other = values()[site].to(value)
        check_like(self, other, value)
        first = 0 if site.endswith(("cross_attn.keys", "cross_attn.values")) else offset  # those are the source's
        if self.token is None:
            n = min(value.size(-2), other.size(-2) - first)
            places, here = slice(first, first + n), slice(0, max(n, 0))
        else:
            if self.token >= other.size(-2):
                raise ChangeError(
                    "{change} names token {place}, but the run of the other sentence has only {n} tokens. Choose a "
                    "token that both runs have.",
                    change=str(self),
                    place=self.token + 1,
                    n=other.size(-2),
                )
            if not first <= self.token < first + value.size(-2):
                return value
            places, here = slice(self.token, self.token + 1), slice(self.token - first, self.token - first + 1)
        changed = value.clone()
        if here.stop > here.start:
            changed[..., here, :] = other[..., places, :]
        return changed
