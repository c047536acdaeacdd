"""Changes of rows of a map (mute, force, set, copy), and activation patching from another sentence's run.

Each row belongs to a query. Places count in the attention's own tokens: with the special pieces of the source, and in
a decoder from its start piece or the beginning of its prompt. A key that a query may not see, such as a later one or
padding, always keeps the weight 0.

What is copied (a head's map, or the values of any site: activation patching) is of the same model, unchanged, on
another sentence, decoded greedily. Maps over the source can be copied only from a sentence with as many tokens. Of
all else, the part that both runs have is copied, and the rest stays.

Source: Wiegreffe and Pinter, "Attention is not not Explanation" (2019), section 3.1, and Jain and Wallace, "Attention
is not Explanation" (2019), section 4.2, who both set weights that a model would not have chosen; Serrano and Smith,
"Is Attention Interpretable?" (2019), section 3, for a weight that is set to 0 with the others renormalised;
Vig et al., "Investigating Gender Bias in Language Models Using Causal Mediation Analysis" (2020), section 3, and Meng
et al., "Locating and Editing Factual Associations in GPT" (2022), section 2.1, for values of another run.

Shapes: B batch, H heads, Q queries, K keys.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import Sentence, joined, say
from transformer.model.anatomy import StackName, Sublayer, anatomy
from transformer.model.config import MAX_LENGTH, ModelConfig
from transformer.model.sites import sites
from transformer.model.taps import Hook
from transformer.runs.interventions.base import Intervention, InterventionContext, InterventionError, Other
from transformer.runs.interventions.fields import choice, numbers, place, text, yes
from transformer.runs.interventions.targets import (
    STACKS,
    AtPlace,
    HeadChange,
    PartChange,
    UnderMask,
    check_read,
    check_readable,
    open_cells,
    seen_keys,
)

MOST_WEIGHT: Final = 1000.0


class RowChange(HeadChange, kw_only=True):
    # Which row, from 0; None for all.
    query: int | None = place(say("Query"), MAX_LENGTH, what="query", optional=True)

    group = "rows"

    @property
    def name(self) -> str:
        if self.query is None:
            return super().name
        return say("{head}, query {query}", head=super().name, query=self.query + 1)

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        check_readable(self, self.query, config)

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        if self.kind == "encoder":
            check_read(self, self.query, ids)

    def rewrite(self, row: Tensor, seen: Tensor) -> Tensor:
        """New weights for rows of weights [B, H, rows, K]; a bool of the same shape says which keys each may see."""
        raise NotImplementedError

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
        return (UnderMask(self.where(ground.config), "weights", self._rewritten, head=self.head),)

    def _rewritten(self, weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
        rows = slice(None)
        if self.query is not None:
            if not offset <= self.query < offset + weights.size(-2):
                return weights
            rows = slice(self.query - offset, self.query - offset + 1)
        seen, changed = open_cells(mask, weights), weights.clone()
        changed[..., rows, :] = self.rewrite(weights[..., rows, :], seen[..., rows, :])
        return changed


class KeyChange(RowChange, kw_only=True):
    key: int = place(say("Key"), MAX_LENGTH, what="key")  # which one, from 0

    def check(self, config: ModelConfig) -> None:
        super().check(config)
        check_readable(self, self.key, config)

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        super().fits(ids, config)
        if self.kind != "decoder":
            check_read(self, self.key, ids)


class Mute(KeyChange, kw_only=True):
    renormalised: bool = yes(say("Renormalised"), True)  # the other weights are divided by their sum

    word = "mute"
    title = say("A key is muted")
    about = say(
        "The key's weight is set to 0. If the other weights of the row are renormalised, they sum to 1 again. "
        "Serrano and Smith (2019), section 3."
    )

    def told(self) -> str:
        if self.renormalised:
            return say("{row}: key {key} is muted, the other weights are renormalised", row=self.name, key=self.key + 1)
        return say("{row}: key {key} is muted, the other weights stay unchanged", row=self.name, key=self.key + 1)

    def rewrite(self, row: Tensor, seen: Tensor) -> Tensor:
        if self.key >= row.size(-1):  # a decoder has not read so far yet
            return row
        changed = row.clone()
        changed[..., self.key] = 0.0
        return normalised(changed) if self.renormalised else changed


class Force(KeyChange, kw_only=True):
    word = "force"
    title = say("All weight is put on one key")
    about = say(
        "Every query that may see this key gives it weight 1. The rows of all other queries stay unchanged and "
        "give it no weight. Jain and Wallace (2019), section 4.2, set weights in this way."
    )

    @property
    def target(self) -> tuple[object, ...]:
        """The rows, because a row cannot be forced to two keys."""
        return (self.word, self.kind, self.layer, self.head, self.query)

    def told(self) -> str:
        return say("{row}: all weight is on key {key}", row=self.name, key=self.key + 1)

    def rewrite(self, row: Tensor, seen: Tensor) -> Tensor:
        if self.key >= row.size(-1):
            return row
        forced = torch.zeros_like(row)
        forced[..., self.key] = 1.0
        return torch.where(seen[..., self.key, None], forced, row)


class Weigh(RowChange, kw_only=True):
    # One a key, from the first on, 0 to 1000; keys beyond them, and those that may not be seen, get 0.
    weights: tuple[float, ...] = numbers(say("Weights"), 0.0, MOST_WEIGHT)
    renormalised: bool = yes(say("Renormalised"), True)  # they are divided by their sum

    word = "weigh"
    title = say("A row's weights are set by hand")
    about = say(
        "Keys for which you give no number, or that the query may not see, get weight 0. Wiegreffe and Pinter "
        "(2019), section 3."
    )

    def agree(self) -> None:
        if self.renormalised and sum(self.weights) == 0.0:
            raise QueryError("weights that are all 0 cannot be renormalised; make one of them larger than 0.")

    def fits(self, ids: tuple[int, ...], config: ModelConfig) -> None:
        super().fits(ids, config)
        if self.kind != "decoder" and len(self.weights) > len(ids):
            raise InterventionError(
                "{change} gives {n} weights, but the source has only {keys} tokens. Give at most one weight per token.",
                change=str(self),
                n=len(self.weights),
                keys=len(ids),
            )

    def told(self) -> str:
        listed = ", ".join(f"{weight:g}" for weight in self.weights[:8]) + ", …" * (len(self.weights) > 8)
        if self.renormalised:
            return say("{row}: weights in the ratio {weights}", row=self.name, weights=listed)
        return say("{row}: weights {weights}", row=self.name, weights=listed)

    def rewrite(self, row: Tensor, seen: Tensor) -> Tensor:
        given = row.new_zeros(row.size(-1))
        n = min(len(self.weights), row.size(-1))
        given[:n] = row.new_tensor(self.weights[:n])
        weights = given * seen
        return normalised(weights) if self.renormalised else weights


def normalised(rows: Tensor) -> Tensor:
    """Rows [..., K] divided by their sums; a row that sums to 0 stays."""
    sums = rows.sum(-1, keepdim=True)
    return torch.where(sums == 0.0, rows, rows / sums)


Values = Callable[[], dict[str, Tensor]]


def taken(ground: InterventionContext, source: str, wanted: Sequence[str]) -> Values:
    """Sites of the other run, which is made once, when first needed; an InterventionError if that is impossible."""

    @cache
    def values() -> dict[str, Tensor]:
        try:
            other: Other = ground.other(source, wanted)
        except QueryError as error:
            raise InterventionError(
                "the other sentence that a change uses cannot be read: {problem}", problem=error.sentence
            ) from None
        return {site: value.clone() for site, value in other.values.items()}

    return values


def check_like(change: Intervention, other: Tensor, here: Tensor) -> None:
    """Check that another run's values [1, ..., tokens, width] have as many heads as these, or raise an error."""
    if other.shape[1:-2] != here.shape[1:-2]:
        raise InterventionError(
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

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
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
            raise InterventionError(
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
    value: str = choice(say("Value"), PATCHED, "layer", target=True)  # a key of `PATCHED`
    # From 0; None: all that both runs have.
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
        place = STACKS[self.stack]
        if self.layer is not None:
            place = say("{stack}, layer {layer}", stack=place, layer=self.layer + 1)
        what = joined(", ", [place, PATCHED[self.value]])
        if self.token is None:
            return say("{what}: taken from “{text}”", what=what, text=self.text)
        return say("{what}, token {token}: taken from “{text}”", what=what, token=self.token + 1, text=self.text)

    def visitors(self, ground: InterventionContext) -> tuple[Hook, ...]:
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
        begin, end = first, min(first + value.size(-2), other.size(-2))
        if self.token is not None:
            if self.token >= other.size(-2):
                raise InterventionError(
                    "{change} names token {place}, but the run of the other sentence has only {n} tokens. Choose a "
                    "token that both runs have.",
                    change=str(self),
                    place=self.token + 1,
                    n=other.size(-2),
                )
            begin, end = max(begin, self.token), min(end, self.token + 1)
        if begin >= end:
            return value
        changed = value.clone()
        changed[..., begin - first : end - first, :] = other[..., begin:end, :]
        return changed
