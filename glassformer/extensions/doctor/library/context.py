"""What the tests of the doctor are made on: a checkpoint, a few sentences, and what several tests need of both.

Each test asks for what it needs; what was computed for one test is there for the next. A patient belongs to one
examination and one thread.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

from glassformer.extensions.doctor.library.findings import (
    MOST_PLACES,
    Area,
    DoctorTestResult,
    NotTestable,
    not_applicable,
)
from glassformer.extensions.doctor.library.input_rows import InputRow, OwnCode, rows_of
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence
from transformer.model.anatomy import Anatomy
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.trace import Trace
from transformer.trying.losses import MASKS, Loss, Samples, Variants

SENTENCES = 12
"""Of those that are given, as many are taken; more change few verdicts, and each costs time."""
SCORED = 32
"""Those whose losses under several settings are compared: a wrong one may cost nothing on most of them."""

Origin = Literal["given", "examples", "none"]
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class ExaminationContext:
    """A checkpoint under examination."""

    checkpoint: Checkpoint  # any, of every kind
    given: Samples | None = None  # pairs or texts that somebody gave; None if nobody did
    seed: int = 0  # decides which of many sentences are taken, and all else that is drawn
    pause: Callable[[], None] = lambda: None  # called now and then; a server serves others meanwhile
    reported: float | None = None  # the loss that the training reported, in nats a piece; None if nobody says it
    own: OwnCode | None = None  # the forward pass of a training that is watched; None if nobody gave it
    # Those that tests of settings found so far, by what was changed; None where nothing could be.
    losses: dict[str, Loss | None] = field(default_factory=dict)
    # Names of tests so far that found a model that is wrong whatever its settings are (`BELOW`).
    broken_below: list[str] = field(default_factory=list)
    _known: dict[Callable[[ExaminationContext], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, work: Callable[[ExaminationContext], _Result]) -> _Result:
        """What some work on this patient gives, done for the first test that needs it."""
        if work not in self._known:
            self._known[work] = work(self)
        found: _Result = self._known[work]
        return found

    @property
    def model(self) -> Transformer:
        """The model."""
        return self.checkpoint.model

    @property
    def config(self) -> ModelConfig:
        """Its features."""
        return self.checkpoint.config

    @property
    def anatomy(self) -> Anatomy:
        """Its stacks and attentions."""
        return self.model.anatomy

    @property
    def origin(self) -> Origin:
        """Where the sentences come from."""
        if self.given is not None:
            return "given"
        return "examples" if len(_of_card(self.checkpoint)) else "none"

    @cached_property
    def samples(self) -> Samples:
        """The sentences that the tests use, `SENTENCES` at most; none if there are none."""
        return self._some(SENTENCES)

    @cached_property
    def scored(self) -> Samples:
        """Those and more of them, `SCORED` at most."""
        return self._some(SCORED)

    def _some(self, most: int) -> Samples:
        texts = _of_card(self.checkpoint) if self.given is None else self.given
        places = list(range(len(texts)))
        random.Random(self.seed).shuffle(places)
        return texts.only(sorted(places[:most]))

    @cached_property
    def rows(self) -> list[InputRow]:
        """What the tests of the wiring let the model read: there always is something."""
        return rows_of(self.checkpoint, self.samples, self.seed)

    @cached_property
    def variants(self) -> Variants:
        """What makes models of the same parameters under another config."""
        return Variants(self.checkpoint)

    @cached_property
    def runs(self) -> tuple[Trace | GlassformerError, ...]:
        """The greedy run of each sentence, in their order; or the error that it ended with."""
        found: list[Trace | GlassformerError] = []
        for source in self.samples.sources:
            self.pause()
            try:
                found.append(self.checkpoint.run(source))
            except GlassformerError as error:
                found.append(error)
        return tuple(found)

    @cached_property
    def written(self) -> list[InputRow]:
        """What the decoder reads of each sentence with its right output: the reference if there is one, else its own.

        Sentences that cannot be read, and those for which nothing is written, are left out.
        """
        if self.samples.targets:
            return [row for row in self.rows if row.text is not None]
        return [InputRow(one.src_ids, one.read_ids, one.source_text) for one in self.traces if one.read_ids]

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The runs that ended without an error."""
        return tuple(one for one in self.runs if isinstance(one, Trace))

    @property
    def first_source(self) -> str | None:
        """The first sentence that could be run; None if there is none."""
        return next((trace.query.source for trace in self.traces), None)


def _of_card(checkpoint: Checkpoint) -> Samples:
    """The examples of the card, with what should come out where the card says it of each.

    Where pieces are hidden to be guessed, one with a gap of its own is left out: nobody says what belongs there.
    """
    card, gaps = checkpoint.card, MASKS if checkpoint.model.anatomy.fills else ()
    tried = [one for one in card.tried() if not any(gap in one for gap in gaps)]
    targets = [card.reference_of(one) for one in tried]
    return Samples(tuple(tried), tuple(one for one in targets if one) if all(targets) else ())


LEAK, BELOW = 1, 2


def _nothing(patient: ExaminationContext) -> DoctorTestResult:
    raise NotImplementedError


@dataclass(frozen=True)
class DoctorTest:
    """One test: decorates the function that measures. What that leaves out of a finding is said here, once."""

    __test__ = False  # pytest takes a class of this name for tests of its own

    area: Area  # what it is about
    title: Sentence  # what is tested, in a few words
    _: KW_ONLY
    threshold: float | None = None  # what its number is held against
    why: Sentence | Literal[""] = ""  # why the threshold is where it is
    meaning: Sentence | Literal[""] = ""  # of a fault, in plain words
    causes: Sentence | Literal[""] = ""  # of a fault, as a rule, and what to do
    # Whether other tests show the mistake that it names, too: 0 for no; else the likelier, the less. `LEAK`, `BELOW`
    # (what is computed is wrong, whatever the settings are), or more than that.
    cause: int = 0
    # Whether a fault may follow from a leak: a decoder that looks up what it has to write needs neither the source
    # nor most of itself.
    of_a_leak: bool = False
    # Faults that tests plant, by their keys: those that it must find, and others that it may see.
    finds: tuple[str, ...] = ()
    sees: tuple[str, ...] = ()
    name: str = ""  # for programs, such as "causality": that of its function
    look: Callable[[ExaminationContext], DoctorTestResult] = (
        _nothing  # what a patient shows; a `NotTested` where nothing can be said
    )

    def __call__(self, look: Callable[[ExaminationContext], DoctorTestResult]) -> DoctorTest:
        """The test that looks at a patient so: decorates its function."""
        return replace(self, name=self.name or look.__name__, look=look)

    @property
    def of_outputs(self) -> bool:
        """Whether it looks at what the model writes, or at how well it guesses: that shows any mistake below."""
        return self.area == "behaviour" and self.cause != LEAK

    def measure(self, patient: ExaminationContext) -> DoctorTestResult:
        """What it found, in full."""
        try:
            found = self.look(patient)
        except NotTestable as error:
            return not_applicable(error.sentence)
        faulty, held = found.verdict in ("broken", "look"), found.number is not None
        return replace(
            found,
            threshold=self.threshold if found.threshold is None and held else found.threshold,
            why=found.why or (self.why if held else ""),
            meaning=found.meaning or (self.meaning if faulty else ""),
            causes=found.causes or (self.causes if faulty else ""),
            places=found.places[:MOST_PLACES],
            more=max(0, len(found.places) - MOST_PLACES),
        )
