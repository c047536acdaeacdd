"""Changes of rows of a map: a key is muted, all weight is put on one, or the weights are set by hand.

Each row belongs to a query. Places count in the attention's own tokens: with the special pieces of the source, and in
a decoder from its start piece or the beginning of its prompt. A key that a query may not see, such as a later one or
padding, always keeps the weight 0.

Source: Wiegreffe and Pinter, "Attention is not not Explanation" (2019), section 3.1, and Jain and Wallace, "Attention
is not Explanation" (2019), section 4.2, who both set weights that a model would not have chosen; Serrano and Smith,
"Is Attention Interpretable?" (2019), section 3, for a weight that is set to 0 with the others renormalised.

Shapes: B batch, H heads, Q queries, K keys.
"""

from typing import Final

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.i18n import say
from transformer.model.config import MAX_LENGTH, ModelConfig
from transformer.model.taps import Visitor
from transformer.runs.interventions.base import ChangeError, Ground
from transformer.runs.interventions.spelling import numbers, place, yes
from transformer.runs.interventions.where import HeadChange, UnderMask, check_read, check_readable, open_cells

MOST_WEIGHT: Final = 1000.0


class RowChange(HeadChange, kw_only=True):
    """A change of one row of a map, or of all."""

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

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
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
    """A change of the weight of one key."""

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
            return say(
                "{row}: key {key} is muted, the other weights are renormalised", row=self.name, key=self.key + 1
            )
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
            raise ChangeError(
                "{change} gives {n} weights, but the source has only {keys} tokens. Give at most one weight per "
                "token.",
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
