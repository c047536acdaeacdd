"""Examination context: checkpoint, sample sentences, and cached results shared by the tests.

Results computed for one test are cached for the next. A context belongs to one examination and one thread.
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
from transformer.analysis.losses import MASKS, Loss, Samples, Variants
from transformer.checkpoint.load import Checkpoint
from transformer.errors import GlassformerError
from transformer.i18n import Sentence
from transformer.model.anatomy import Anatomy
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer
from transformer.runs.trace import Trace

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
    reported: float | None = None  # the loss that the training reported, in nats per piece; None if unknown
    own: OwnCode | None = None  # the forward pass of a training that is watched; None if nobody gave it
    # Losses of settings tests so far, by what was changed; None where nothing could be.
    losses: dict[str, Loss | None] = field(default_factory=dict)
    # Names of tests so far that found a fault independent of the settings (`BELOW`).
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
        """What the decoder reads of each readable sentence with its right output: the reference, or its own output."""
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
    """The card's examples, with expected outputs where it has them.

    For a model that fills masks, an example with its own mask is left out: its right piece is unknown.
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
    # 0 unless other tests show its fault too; else the higher, the less likely the cause. `LEAK`, `BELOW` (the
    # computation is wrong whatever the settings are), or more.
    cause: int = 0
    # Whether a fault may follow from a leak: such a decoder needs neither the source nor most of itself.
    of_a_leak: bool = False
    # Keys of planted faults: those that it must find, and others that it may see.
    finds: tuple[str, ...] = ()
    sees: tuple[str, ...] = ()
    name: str = ""  # for programs, such as "causality": that of its function
    look: Callable[[ExaminationContext], DoctorTestResult] = (
        _nothing  # what a patient shows; a `NotTestable` where nothing can be said
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
