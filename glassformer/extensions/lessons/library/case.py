"""What picks and oracles are given, and what they answer with.

A pick finds in a run what is worth looking at: `(case) -> {name: value}`. An oracle computes the answer to a question
from the live run: `(case) -> Answer`. Both are pure functions of the case. Where a question makes no sense for the
sentence or the model at hand they raise `NotHere` with the reason.

Values count as a reader does: steps, tokens, layers and heads from 1.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from glassformer.extensions.lessons.library.lesson import ALWAYS
from transformer.checkpoint.load import Checkpoint
from transformer.errors import SaidError
from transformer.i18n import say
from transformer.runs.drafting import verdict_of
from transformer.runs.interventions import Intervention
from transformer.runs.query import Beam, Query
from transformer.runs.trace import Trace

NEAR: Final = say(
    "For this sentence, two numbers are so close that rounding would decide the answer; try another one."
)


class NotHere(SaidError, Exception):  # noqa: N818  it is no error, but an answer that is not one
    """A question that this sentence or this model cannot answer; the message says why."""


@dataclass(frozen=True)
class Option:
    """One of the choices."""

    word: str  # what it is called in the lesson's file and in what a browser remembers
    label: str = ""  # what a reader sees; "" if the lesson's file has the text


def worded(*words: str) -> tuple[Option, ...]:
    """Choices whose texts the lesson's file has."""
    return tuple(map(Option, words))


def numbered(numbers: Mapping[str, float], form: str = ",") -> tuple[Option, ...]:
    """Choices that are numbers, the smallest first; of those that read the same the first one is a choice."""
    shown: dict[str, str] = {}
    for word, number in numbers.items():
        shown.setdefault(format(number, form), word)
    return tuple(Option(shown[text], text) for text in sorted(shown, key=lambda text: numbers[shown[text]]))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What an oracle found."""

    right: str | float  # the word of the right choice; the number; or the piece that is asked for
    # The choices, the right one among them; none where a number or a piece is asked for.
    options: tuple[Option, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)  # what the texts may name
    variant: str = ALWAYS  # which of the step's texts tells the outcome
    accepted: tuple[str, ...] = ()  # of a number or a piece that is typed: everything else that is right, too
    usual: float | None = None  # of a number: what the usual misconception gives for it; None where that is not known


@dataclass(frozen=True, kw_only=True)
class Case:
    """The learner's run, and what a step is about."""

    checkpoint: Checkpoint  # what is open
    trace: Trace  # the run of the learner's sentence: greedy, nothing forced, nothing changed
    picked: Mapping[str, Any] = field(default_factory=dict)  # what the step's pick found
    given: str = ""  # what the learner typed, where a piece is asked for; "" before that
    run: Callable[[Query], Trace] | None = None  # makes other runs on the same checkpoint; the app's keeps them

    def at(self, name: str) -> int:
        """A place that the pick found, from 0."""
        return int(self.picked[name]) - 1

    def another(self, **changes: Any) -> Trace:
        """Another run on the same checkpoint; `changes` are fields of the query that differ from the learner's.

        Raises:
            NotHere: It chose a piece that another came so near to that rounding decided.
        """
        query = replace(self.trace.query, **changes)
        trace = self.checkpoint.run(query) if self.run is None else self.run(query)
        if trace.n_steps and not isinstance(query.decoding, Beam) and not verdict_of(trace).sure:
            raise NotHere(NEAR)
        return trace

    def changed(self, *interventions: Intervention) -> Trace:
        """The run with changes inside the model."""
        return self.another(interventions=interventions)
