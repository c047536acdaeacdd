"""What a card of the page What goes wrong is: a mistake as data, and what one sentence's two runs came to.

A card names a change; `cards.toml` has what is said of it. The change is carried out by the library, as any other is;
the outcome is computed, and each outcome has its own sentence, as most mistakes change some outputs and leave others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from glassformer.charts.theme import Spec
from glassformer.extensions.effects.effects_look import Mistake
from transformer.analysis.at_once import AtOnce
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say, say_n
from transformer.i18n.tables import read_table
from transformer.model.anatomy import Anatomy, anatomy
from transformer.model.config import ModelConfig
from transformer.runs.interventions import Intervention
from transformer.runs.query import Query
from transformer.runs.trace import Trace

Outcome = Literal["same", "changed", "nothing", "endless", "not_finite", "refused"]

LEAK: Final = "reverse-leak"  # the checkpoint that was trained on a leak; all others are healthy
RIGHT: Final = say("As it should be")
WRONG: Final = say("With the mistake")


@dataclass(frozen=True)
class Side:
    """One of the two things that a card compares: a model, and what it is asked."""

    checkpoint: Checkpoint
    query: Query

    def changed(self, changes: tuple[Intervention, ...]) -> Side:
        """The same with changes besides its own."""
        return replace(self, query=replace(self.query, interventions=(*self.query.interventions, *changes)))


@dataclass(frozen=True)
class Sides:
    """What a card compares."""

    right: Side  # the two runs
    wrong: Side  # the two runs
    read_right: Side  # what reads the right output at once, for the number and the chart
    read_wrong: Side  # what reads the right output at once, for the number and the chart


@dataclass(frozen=True, eq=False)
class Found:
    """What came of the two."""

    sides: Sides  # what was compared
    right: Trace  # the right run
    wrong: Trace | None  # the other; None if it could not be done
    outcome: Outcome  # what became of the output
    site: str = ""  # where the model first computed what is not finite; "" if nowhere
    problem: str = ""  # why it could not be done; "" if it could
    read_right: AtOnce | None = None  # the right output, read at once; None where that could not be done
    read_wrong: AtOnce | None = None  # the right output, read at once; None where that could not be done

    @property
    def parts(self) -> Anatomy:
        """Of the model that reads the right output."""
        return anatomy(self.sides.read_right.checkpoint.config)

    @property
    def first(self) -> int | None:
        """The first piece in which the outputs differ, from 0; None if they do not, or there is one output."""
        if self.wrong is None:
            return None
        pairs = zip(self.right.tgt_ids, self.wrong.tgt_ids, strict=False)
        n = min(self.right.n_steps, self.wrong.n_steps)
        same = next((place for place, (one, other) in enumerate(pairs) if one != other), n)
        return None if self.outcome == "same" else same


@dataclass(frozen=True)
class Measure:
    """The one number of a card."""

    name: Sentence  # what it is, with its unit
    of: Callable[[Found, AtOnce], float]  # computes it from one reading of the right output
    form: str = ".2f"  # how it is written, as `format` takes it
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG)  # what the two numbers are of
    model: str = ""  # the one checkpoint that both numbers are of, where the outputs are of two; "" otherwise
    finite: bool = True  # there is none where something is not finite; if not, it counts just that

    def numbers(self, found: Found) -> tuple[float | None, float | None]:
        """The right number and the other; None where there is none."""
        right, wrong = (None if one is None else self.of(found, one) for one in (found.read_right, found.read_wrong))
        return right, wrong


@dataclass(frozen=True)
class Chart:
    """A chart with its sentences, as `glassformer.shared.drawing.chart` takes them."""

    figure: Spec
    alt: str
    how_to_read: str


@dataclass(frozen=True)
class Said:
    """What is said of a mistake."""

    title: Sentence  # what it is called
    about: Sentence  # what is wired wrongly, and how one comes to it: two or three sentences
    wrong: Sentence  # a line as a learner writes it, in plain PyTorch
    right: Sentence  # the right one
    source: Sentence  # where what is right is described
    outcomes: Mapping[
        Outcome, Sentence
    ]  # for "same" and "changed", and what else needs its own: what that means here


SAID: Final = {name: Said(**row) for name, row in read_table(Path(__file__).with_name("cards.toml")).items()}


@dataclass(frozen=True)
class Card:
    """A mistake."""

    mistake: Mistake  # its name in an address
    measure: Measure  # the number
    charts: Callable[[Found], Sequence[Chart]]  # draws one chart, or two maps that belong together
    change: Callable[[ModelConfig], tuple[Intervention, ...]]  # the interventions that make the mistake in a model
    # What has to be recorded for the number and the chart; losses need nothing.
    sites: Callable[[ModelConfig], Sequence[str]] = lambda _: ()
    # Why the mistake cannot be made in a model, in one sentence; None if it can.
    unfit: Callable[[Checkpoint], Sentence | None] = lambda _: None
    seen_on: str = "reverse"  # A shipped checkpoint in which it can be
    # What is compared, where it is not one model with and without the change.
    sides: Callable[[Side], Sides] | None = None
    labels: tuple[Sentence, Sentence] = (RIGHT, WRONG)  # what the two outputs are of

    @property
    def said(self) -> Said:
        """What is said of it."""
        return SAID[self.mistake]


def happened(found: Found) -> Sentence:
    """What became of the output, in a sentence."""
    match found.outcome:
        case "same":
            return say("This mistake changes nothing in this sentence: both outputs are the same, piece for piece.")
        case "nothing":
            return say("The model writes nothing: the first piece it chooses is the end mark.")
        case "endless":
            n = found.wrong.n_steps if found.wrong else 0
            return say_n(
                "The output does not end: it was stopped after {n} piece.",
                "The output does not end: it was stopped after {n} pieces.",
                n,
            )
        case "not_finite":
            return say(
                "The model writes nothing: NaN (not a number) or infinite values first appear at “{site}”, and "
                "everything computed from them is lost, too.",
                site=found.site,
            )
        case "refused":
            return say("The model with the mistake cannot be run: {problem}", problem=found.problem)
    return say("From piece {n} on, the output is different.", n=(found.first or 0) + 1)
