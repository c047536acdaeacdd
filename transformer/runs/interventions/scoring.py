"""Changes of how a score is made of q . k, and a weight of a score.

Source: Vaswani et al. (2017), section 3.2.1 and its footnote 4, for the scale.

Shapes: B batch, H heads, Q queries, K keys.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.scores import Scoring, Weigh, masked_softmax
from transformer.model.tap import Rewirer, Visitor
from transformer.runs.interventions.base import Ground, Group, Intervention
from transformer.runs.interventions.spelling import choice, number, yes
from transformer.runs.interventions.where import WHERE, attentions, check_where, where
from words import Sentence, say

SCALES: Final[dict[str, str]] = {
    "off": say("No scale: q·k as it is"),
    "model": say("Divided by √d_model"),
    "number": say("Times the number"),
}


@dataclass(frozen=True)
class _InAttentions(Intervention):
    """What can be done to one attention or to all."""

    where: str = where()

    def check(self, config: ModelConfig) -> None:
        """See whether a model has this attention."""
        super().check(config)
        check_where(self, config, self.where)

    def _rewired(self, ground: Ground, change: Callable[[Scoring], Scoring], **how: Any) -> tuple[Visitor, ...]:
        chosen = attentions(ground.config, self.where)
        return (Rewirer({one.site("*", "scoring"): change for one in chosen}, **how),)


@dataclass(frozen=True)
class ScoreScale(_InAttentions):
    """Scores are multiplied by another number.

    Attributes:
        where: In which attention.
        how: No scale, 1 / sqrt(d_model), or the number.
        by: The number.
    """

    how: str = choice(say("Scale"), SCALES, "off")
    by: float = number(say("Number", about="a factor"), 0, 100, 1)

    word: ClassVar[str] = "scale"
    group: ClassVar[Group] = "attention"
    title: ClassVar[Sentence] = say("Another scale of the scores")
    about: ClassVar[Sentence] = say(
        "q·k is divided by √d_head, so that the softmax does not end up on one key; Vaswani et al. (2017), section "
        "3.2.1. Here it is multiplied by something else."
    )

    def told(self) -> str:
        """In words."""
        return {
            "off": say("{attention}: scores are not scaled", attention=WHERE[self.where]),
            "model": say("{attention}: scores are divided by √d_model", attention=WHERE[self.where]),
            "number": say(
                "{attention}: q·k is multiplied by {number:g}", attention=WHERE[self.where], number=self.by
            ),
        }[self.how]

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Puts in the number."""
        scale = {"off": 1.0, "model": 1 / math.sqrt(ground.config.d_model), "number": self.by}[self.how]
        return self._rewired(ground, lambda how: replace(how, scale=scale))


@dataclass(frozen=True)
class SoftmaxTwice(_InAttentions):
    """The weights go through the softmax once more.

    Attributes:
        where: In which attention.
        closed: The mask closes keys for the second softmax as well; if not, closed keys get a weight by it.
    """

    closed: bool = yes(say("Closed keys stay closed"), True)

    word: ClassVar[str] = "twice"
    group: ClassVar[Group] = "attention"
    title: ClassVar[Sentence] = say("The softmax twice")
    about: ClassVar[Sentence] = say(
        "The weights go through the softmax once more, as happens where a loss or a function that is called takes it "
        "again: what was between 0 and 1 comes out nearly equal."
    )

    def told(self) -> str:
        """In words."""
        if self.closed:
            return say("{attention}: weights go through the softmax twice", attention=WHERE[self.where])
        return say(
            "{attention}: weights go through the softmax twice, and closed keys are open to the second",
            attention=WHERE[self.where],
        )

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Takes the softmax of what it gave."""
        return self._rewired(ground, self._rewire, causal=self.closed)

    def _rewire(self, how: Scoring) -> Scoring:
        once: Weigh = how.weigh or _once

        def twice(now: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
            return masked_softmax(once(now, scores, mask), mask if self.closed else None, fill=now.fill)

        return replace(how, weigh=twice)


def _once(how: Scoring, scores: Tensor, mask: Tensor | None) -> Tensor:
    return masked_softmax(scores, mask, fill=how.fill)


@dataclass(frozen=True)
class FillValue(_InAttentions):
    """Closed scores are replaced by a number and take part in the softmax.

    Attributes:
        where: In which attention.
        fill: The number.
    """

    fill: float = number(say("Fill value"), -1e9, 0, -1)

    word: ClassVar[str] = "fill"
    group: ClassVar[Group] = "masks"
    title: ClassVar[Sentence] = say("Another fill value of masks")
    about: ClassVar[Sentence] = say(
        "Closed scores are replaced by this number and take part in the softmax: it closes them only if it is far "
        "below all other scores, and a row that is closed throughout gets equal weights."
    )

    @property
    def target(self) -> tuple[object, ...]:
        """The fill value of an attention."""
        return ("fill", self.where)

    def told(self) -> str:
        """In words."""
        return say("{attention}: closed scores are {fill:g}", attention=WHERE[self.where], fill=self.fill)

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Puts in the number. What comes after a query may then weigh something, so that no cache is right."""
        return self._rewired(ground, lambda how: replace(how, fill=self.fill), causal=False)


@dataclass(frozen=True)
class NoGuard(_InAttentions):
    """Closed scores are minus infinity, and nothing is done about a row of nothing else: it is NaN.

    Attributes:
        where: In which attention.
    """

    word: ClassVar[str] = "unguarded"
    group: ClassVar[Group] = "masks"
    title: ClassVar[Sentence] = say("Minus infinity without a guard")
    about: ClassVar[Sentence] = say(
        "Closed scores are minus infinity, as nearly everywhere, but nothing is done about a row that is closed "
        "throughout: it becomes NaN, and so does whatever reads it. Where no row is closed throughout, nothing "
        "changes."
    )

    @property
    def target(self) -> tuple[object, ...]:
        """The fill value of an attention."""
        return ("fill", self.where)

    def told(self) -> str:
        """In words."""
        return say("{attention}: closed scores are −∞, without a guard", attention=WHERE[self.where])

    def visitors(self, ground: Ground) -> tuple[Visitor, ...]:
        """Fills with minus infinity as with any number."""
        return self._rewired(ground, lambda how: replace(how, fill=-torch.inf))
