"""Changes of how sharply heads look: equally at all keys, more or less sharply, or at the best key alone.

    softmax(scores / T): T below 1 sharpens, above 1 softens; T = 0 looks the best key up; T without limit is uniform

Source: Guo et al., "On Calibration of Modern Neural Networks" (2017), section 4.2, for a temperature in a softmax;
Graves et al., "Neural Turing Machines" (2014), section 3.3.1, for one that sharpens attention; Vaswani et al. (2017),
section 3.2, which calls attention a look-up that is weighted.

Shapes: B batch, H heads, Q queries, K keys.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.tap import Visitor
from transformer.runs.interventions.base import Ground, Group
from transformer.runs.interventions.heads import HeadChange
from transformer.runs.interventions.spelling import number
from transformer.runs.interventions.visiting import AtPlace, UnderMask, of_heads
from words import Sentence, say

LEAST: Final = 0.05
MOST: Final = 20.0


@dataclass(frozen=True)
class Uniform(HeadChange):
    """A head weighs all keys that may be seen alike."""

    word: ClassVar[str] = "uniform"
    group: ClassVar[Group] = "heads"
    title: ClassVar[Sentence] = say("A head looks everywhere alike")
    about: ClassVar[Sentence] = say(
        "Every key that may be seen has the same weight, so that the head writes the mean of their values."
    )

    def told(self) -> str:
        """In words."""
        return say("{head}: looks at all keys alike", head=self.name)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Puts equal weights in the place of the weights."""
        return (UnderMask(self.where(ground.config), "weights", partial(_alike, self.head)),)


def _alike(head: int | None, weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> equal ones; a row without any open key stays as it is."""
    seen = _open(mask, weights)
    count = seen.sum(-1, keepdim=True)  # [B, H, Q, 1]
    return of_heads(head, weights, torch.where(count > 0, seen.to(weights.dtype) / count.clamp(min=1), weights))


@dataclass(frozen=True, kw_only=True)
class Temper(HeadChange):
    """A head looks more sharply, or more softly."""

    # What its scores are divided by, 0.05 to 20; 0: all weight is on the best key.
    temperature: float = number(say("Temperature"), 0.0, MOST, 0.5)

    word: ClassVar[str] = "temper"
    group: ClassVar[Group] = "heads"
    title: ClassVar[Sentence] = say("A head looks more sharply or more softly")
    about: ClassVar[Sentence] = say(
        "Its scores are divided by a temperature before the softmax; 0 puts all weight on the best key, as a look-up "
        "does. Graves et al. (2014), section 3.3.1."
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
        """In words."""
        if self.temperature == 0.0:
            return say("{head}: all weight is on the best key", head=self.name)
        return say("{head}: scores are divided by {temperature:g}", head=self.name, temperature=self.temperature)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Divides the scores, or looks the best key up."""
        where = self.where(ground.config)
        if self.temperature == 0.0:
            return (UnderMask(where, "weights", partial(_looked_up, self.head)),)
        return (AtPlace(f"{where}.scores", partial(_divided, self.head, self.temperature)),)


def _divided(head: int | None, temperature: float, scores: Tensor, offset: int) -> Tensor:
    return of_heads(head, scores, scores / temperature)  # before the mask, so that what it fills in stays


def _looked_up(head: int | None, weights: Tensor, mask: Tensor | None, offset: int) -> Tensor:
    """Weights [B, H, Q, K] -> 1 at the open key that has most, the first of equals; a closed row stays as it is."""
    seen = _open(mask, weights)
    best = weights.masked_fill(~seen, -torch.inf).argmax(-1)  # [B, H, Q]
    found = F.one_hot(best, weights.size(-1)).to(weights.dtype)
    return of_heads(head, weights, torch.where(seen.any(-1, keepdim=True), found, weights))


def _open(mask: Tensor | None, weights: Tensor) -> Tensor:
    """The mask in the shape of the weights, bool [B, H, Q, K]."""
    return torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
