"""Findings of the doctor: result records with verdicts, and the range of each number on the shipped checkpoints.

"look" means that a healthy model may have this, too; "broken" that none has; "not_applicable" that the test makes no
sense for this model, or lacks an input, which the finding names.

Calibration is computed: `python -m tools.calibrate` examines the shipped checkpoints with their cards' examples and
writes `calibrated.json`, a number per test and checkpoint, without those in which the test finds something. A test
repeats this and compares. Sentences round outwards, with a margin for other processors, so they hold for every
checkpoint.
"""

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from transformer.errors import SentenceError
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind

Verdict = Literal["broken", "look", "well", "not_applicable"]
"""From the worst to the least; reports list findings in this order."""
Health = Literal["broken", "look", "not_tested", "well"]
"""The verdict of a whole report. "not_tested": no fault was found, but nothing shows that the model does its task."""
Area = Literal["weights", "wiring", "behaviour", "attention", "feed_forward", "tokenizer"]
"""In the order of a good engineer's checklist."""
PageName = Literal["step", "attention", "positions", "masks", "inside", "checkpoints", "forcing", "doctor"]

VERDICTS: Final[dict[Verdict, Sentence]] = {
    "broken": say("broken"),
    "look": say("look at this"),
    "well": say("well"),
    "not_applicable": say("not applicable"),
}
AREAS: Final[dict[Area, Sentence]] = {
    "weights": say("Weights"),
    "wiring": say("Wiring"),
    "behaviour": say("Behaviour on sentences"),
    "attention": say("Attention"),
    "feed_forward": say("Feed-forward and embeddings"),
    "tokenizer": say("Tokenizer"),
}


@dataclass(frozen=True, kw_only=True)
class PageTarget:
    """Where the app shows what was found; None leaves a choice unchanged."""

    page: PageName  # the page
    panel: str = ""  # the part of it, as its address calls it; empty for its own choice
    source: str | None = None  # the sentence
    reference: str | None = None  # what should come out
    kind: Kind | None = None  # which attention and head, or layer; from 0
    layer: int | None = None
    head: int | None = None
    step: int | None = None  # the decoding step, from 0
    tensor: str | None = None  # name of a parameter
    changes: str = ""  # of the run, as an address has them


@dataclass(frozen=True, kw_only=True)
class DoctorTestResult:
    """The result of a test; `DoctorTest.measure` completes it, and an examination makes a `Finding` of it."""

    verdict: Verdict  # what it means
    said: Sentence  # the number in a sentence, with its unit: what was measured, and how much it was
    number: float | None = None  # the deciding number; None if nothing was measured
    threshold: float | None = None  # what the number is compared with; None if there is none
    beside: float | None = None  # a second number that `why` speaks of; None if there is none
    why: Sentence | Literal[""] = ""  # why the threshold is where it is; empty without one
    # The fault in one sentence; empty where the title says it.
    headline: Sentence | Literal[""] = ""
    meaning: Sentence | Literal[""] = ""  # what that means, in plain words; empty if all is well
    causes: Sentence | Literal[""] = ""  # what usually causes it, and what to do; empty if all is well
    # Names of tensors, heads, pieces, sentences; data. At most `MOST_PLACES`.
    places: tuple[str, ...] = ()
    more: int = 0  # how many places are left out
    shown: PageTarget | None = None  # where the app shows it
    # Lines of code: each as it probably is, and as it should be.
    code: tuple[tuple[Sentence, Sentence], ...] = ()


MOST_PLACES = 12
MOST_OF_CHANCE = 0.7
"""A share of the loss of guessing. A model that has only learnt how frequent each piece is reaches about this."""


def not_applicable(said: Sentence) -> DoctorTestResult:
    """A result for a test that has no meaning for this model, or lacks what it needs: which, in one sentence."""
    return DoctorTestResult(verdict="not_applicable", said=said)


NO_OUTPUT: Final = say("This model does not generate text.")
ONE_TEXT: Final = say("This model has no cross-attention: it reads one text only.")
NOT_FINITE: Final = say("This model computes NaN or infinite values on these sentences.")


class NotTestable(SentenceError, Exception):  # noqa: N818  not an error, but a test that cannot be made
    """A test that has no meaning for this model, or lacks what it needs; the message says which, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one test found."""

    test: str  # its name, such as "causality"; data, for programs
    area: Area  # what it is about
    title: Sentence  # what was tested, in a few words, such as "No piece sees a later one"
    measured: DoctorTestResult  # what was found
    # The finding that it follows from, by headline or title; empty if unknown.
    follows: Sentence | Literal[""] = ""
    seconds: float = 0.0  # how long it took

    @property
    def verdict(self) -> Verdict:
        """What it means."""
        return self.measured.verdict


FILE: Final = Path(__file__).with_name("calibrated.json")
ROOM: Final = 0.005
"""Share of a number that another processor may change it by."""


@cache
def record() -> dict[str, Any]:
    """What the file says: content hashes by checkpoint, and numbers by test and checkpoint."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def at_most(test: str) -> float:
    """No shipped checkpoint has a larger number in this test, in two digits; NaN if none was measured."""
    return _rounded(max(record()["numbers"].get(test, {}).values(), default=math.nan), 1)


def at_least(test: str) -> float:
    """No shipped checkpoint has a smaller number in this test, in two digits; NaN if none was measured."""
    return _rounded(min(record()["numbers"].get(test, {}).values(), default=math.nan), -1)


def _rounded(number: float, way: int) -> float:
    """A number in two digits, up (1) or down (-1), by at least `ROOM` of it."""
    number = way * number + ROOM * abs(number)  # down is up of its opposite
    if number == 0 or math.isnan(number):
        return number
    digits = 1 - math.floor(math.log10(abs(number)))
    return way * float(f"{math.ceil(round(number * 10.0**digits, 6))}e{-digits}")
