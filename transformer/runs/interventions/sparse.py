"""Sparse patterns: masks that leave each query a few keys, always under what the model's own masks close.

    local    the keys that are at most so many tokens away
    dilated  every n-th of them, so many to each side: as many keys, from farther away
    global   local, and the first tokens see all and are seen by all

Source: Beltagy et al., "Longformer" (2020), section 3.1; in cross-attention, where query and key are places of two
texts, Luong et al. (2015), section 3.2, "local-m".

Shapes: B batch, Q queries, K keys.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar, Final

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.tap import Visitor
from transformer.runs.interventions.base import Ground, Group, Intervention
from transformer.runs.interventions.heads import ATTENTIONS
from transformer.runs.interventions.spelling import whole
from transformer.runs.interventions.where import ALL, SELF, WHERE, attentions, check_where, where
from words import Sentence, say

PLACES: Final[dict[str, str]] = {**SELF, "cross": ATTENTIONS["cross"]}
MOST: Final = 4096


@dataclass(frozen=True)
class LocalWindow(Intervention):
    """A query sees the keys that are at most so many tokens away from it."""

    where: str = where(PLACES)  # in which attention
    width: int = whole(say("Tokens to each side"), 0, MOST, 1)  # how many, to each side

    word: ClassVar[str] = "window"
    group: ClassVar[Group] = "masks"
    title: ClassVar[Sentence] = say("A local window")
    about: ClassVar[Sentence] = say(
        "A query sees itself and so many tokens to each side, as far as its masks let it; Beltagy et al. (2020), "
        "section 3.1. In cross-attention the window stands at the query's own place in the source."
    )

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this attention."""
        super().check(config)
        check_where(self, config, self.where)

    def told(self) -> str:
        """In words."""
        return say("{attention}: a window of {n:,} to each side", attention=PLACES[self.where], n=self.width)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Closes what the pattern does not have."""
        chosen = attentions(ground.config, self.where, SELF if self.where == ALL else WHERE)
        return tuple(_Closing(one.place("*"), self) for one in chosen)

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """Whether the pattern has these places of queries [Q, 1] and of keys [1, K]: bool [Q, K]."""
        return (query - key).abs() <= self.width


@dataclass(frozen=True)
class DilatedWindow(LocalWindow):
    """A query sees every n-th key to each side.

    Attributes:
        where: In which attention.
        width: How many keys, to each side.
        step: Every how many-th.
    """

    step: int = whole(say("Step", about="a stride"), 2, MOST, 2)

    word: ClassVar[str] = "dilated"
    title: ClassVar[Sentence] = say("A dilated window")
    about: ClassVar[Sentence] = say(
        "A query sees itself and so many tokens to each side, with gaps between them; Beltagy et al. (2020), section "
        "3.1."
    )

    def told(self) -> str:
        """In words."""
        return say(
            "{attention}: a window of {n:,} to each side in steps of {step:,}",
            attention=PLACES[self.where],
            n=self.width,
            step=self.step,
        )

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """As above."""
        apart = (query - key).abs()
        return (apart <= self.width * self.step) & (apart % self.step == 0)


@dataclass(frozen=True)
class GlobalTokens(LocalWindow):
    """A local window; and the first tokens see all and are seen by all.

    Attributes:
        where: In which attention.
        width: How many keys, to each side.
        first: How many tokens are global.
    """

    first: int = whole(say("Global tokens"), 1, MOST, 1)

    word: ClassVar[str] = "global"
    title: ClassVar[Sentence] = say("Global and local attention")
    about: ClassVar[Sentence] = say(
        "A query sees itself and so many tokens to each side; the first tokens see all others and are seen by all, "
        "as far as masks let them. Beltagy et al. (2020), section 3.1."
    )

    def told(self) -> str:
        """In words."""
        return say(
            "{attention}: a window of {n:,} to each side, the first {first:,} global",
            attention=PLACES[self.where],
            n=self.width,
            first=self.first,
        )

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        """As above."""
        return ((query - key).abs() <= self.width) | (key < self.first) | (query < self.first)


class _Closing:
    """Closes what a pattern does not have. The queries come by before the mask, and say how many they are."""

    causal = True

    def __init__(self, attention: str, pattern: LocalWindow) -> None:
        self._sites, self._pattern, self._n_queries = (f"{attention}.queries", f"{attention}.mask"), pattern, 0

    def wants(self, site: str) -> bool:
        return any(fnmatchcase(site, one) for one in self._sites)

    def visit(self, site: str, value: Tensor, offset: int) -> Tensor:
        if site.endswith(".queries"):
            self._n_queries = value.size(-2)
            return value
        query = torch.arange(offset, offset + self._n_queries, device=value.device)[:, None]
        key = torch.arange(value.size(-1), device=value.device)[None, :]
        return value & self._pattern.sees(query, key)  # [B, 1, Q, K]
