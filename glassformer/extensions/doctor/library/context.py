"""Doctor tests: their decorator, the context that they share, rows and texts to read, a user's forward pass.

Results computed for one test are cached for the next. A context belongs to one examination and one thread.

Some tests do not depend on the text, so short texts are filled with random pieces, and a model without sentences reads
random pieces only.

A pass reads one text, as in the recording pass of a run (`transformer.runs.recording_pass`); only the visitor keeps
values: memory is bounded by one layer. Random texts are random pieces without meaning. They reach what a few sentences
do not, and there can be any number of them.

Shapes: B rows or texts, S source tokens, T target tokens, V target vocabulary, D d_model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.findings import (
    MOST_PLACES,
    Area,
    DoctorTestResult,
    NotTestable,
    not_applicable,
)
from glassformer.extensions.wirings.readings import vectors_of
from transformer.analysis.hidden_pieces import MASK_PIECES
from transformer.analysis.losses import SampleLoss, Samples, row_of, text_ids
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError, DataError, GlassformerError, shown
from transformer.i18n import Sentence
from transformer.model.anatomy import Anatomy
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Hook, Tap, tap_of
from transformer.model.transformer import Transformer
from transformer.runs.reading import padded
from transformer.runs.trace import Trace

Forward = Callable[..., Tensor]
"""Logits [B, T, V] for source ids [B, S] and what the decoder reads [B, T]; a model of one stack has one argument.
Both are padded on the right with the padding id."""
AGREES, COARSE = 1e-3, 0.1  # far more than rounding, far less than any mistake; bfloat16 has three digits
FULL = 4  # bytes of a number
SHORTEST, LONGEST = 6, 24
"""Tokens of a row: enough to change one and see those around it, few enough for large models."""
ROOM = 3  # tokens that tests add
DRAWN = 4  # rows where there are no sentences
MOST_ROWS = 6


@dataclass(frozen=True)
class InputRow:
    """What a model reads."""

    source: tuple[int, ...]  # ids that the encoder reads; a decoder-only model ignores them
    # Ids that the decoder reads, from the start mark or the prompt on; an encoder-only model ignores them.
    target: tuple[int, ...]
    text: str | None = None  # the sentence it was made of; None if its pieces were drawn


class Drawing:
    """Draws pieces that are nothing special, by a seed."""

    def __init__(self, checkpoint: Checkpoint, seed: int) -> None:
        self._random, config = random.Random(seed), checkpoint.config
        apart = {config.pad_id, config.unk_id, config.bos_id, config.decoder_start_id, *config.end_ids}
        self._source = _plain(config.src_vocab_size, checkpoint.src_tokenizer.is_special, apart)
        self._target = _plain(config.tgt_vocab_size, checkpoint.tgt_tokenizer.is_special, apart)

    def source(self, n: int) -> tuple[int, ...]:
        """So many pieces of the source; all different, if there are as many."""
        return self._several(self._source, n)

    def target(self, n: int) -> tuple[int, ...]:
        """The same of the target."""
        return self._several(self._target, n)

    def another(self, i: int) -> int:
        """A piece of the target that is not this one, if there is another."""
        return self._random.choice([one for one in self._target if one != i] or self._target)

    def _several(self, pieces: list[int], n: int) -> tuple[int, ...]:
        draw = self._random.sample if n <= len(pieces) else self._random.choices
        return tuple(draw(pieces, k=max(0, n)))


def _plain(size: int, is_special: Callable[[int], bool], apart: set[int | None]) -> list[int]:
    return [i for i in range(size) if i not in apart and not is_special(i)] or list(range(size))


def rows_of(checkpoint: Checkpoint, samples: Samples, seed: int) -> list[InputRow]:
    """Rows of the sentences that can be read, `MOST_ROWS` at most; rows drawn by the seed if there are none."""
    drawing, found = Drawing(checkpoint, seed), []
    for i, source in enumerate(samples.sources[:MOST_ROWS]):
        try:
            ids = text_ids(source, checkpoint.src_tokenizer, checkpoint.config.normalisation)
            target = text_ids(samples.targets[i], checkpoint.tgt_tokenizer) if samples.targets else ()
        except DataError:
            continue
        found.append(_row(checkpoint, ids, target, drawing, text=source))
    lengths = range(SHORTEST, SHORTEST + DRAWN)
    return found or [_row(checkpoint, drawing.source(n), drawing.target(n), drawing) for n in lengths]


def _row(
    checkpoint: Checkpoint, ids: tuple[int, ...], output: tuple[int, ...], drawing: Drawing, *, text: str | None = None
) -> InputRow:
    config = checkpoint.config
    longest = max(1, min(LONGEST, config.max_len - ROOM))
    around = len(config.source_start) + len(config.source_end)
    inner = tuple(i for i in ids if i < config.src_vocab_size)[: max(1, longest - around)]
    inner += drawing.source(min(SHORTEST, longest) - around - len(inner))
    source = (*config.source_start, *inner, *config.source_end)
    reads = checkpoint.model.anatomy.reads
    begin = (config.decoder_start_id, *config.forced_ids) if reads else (*config.source_start, *inner)
    target = (*begin, *(i for i in output if i < config.tgt_vocab_size))[:longest]
    return InputRow(source, (*target, *drawing.target(min(SHORTEST, longest) - len(target))), text)


@dataclass(frozen=True)
class OwnCode:
    """The pass that a training makes; with gradients, as some layers of torch compute otherwise without."""

    forward: Forward  # as the user gave it
    device: torch.device  # where the model is
    dtype: torch.dtype  # of its parameters

    @property
    def agrees(self) -> float:
        """How far logits that are computed in two ways may be apart, in units of their spread."""
        return AGREES if self.dtype.itemsize >= FULL else COARSE

    def logits(self, checkpoint: Checkpoint, rows: Sequence[InputRow]) -> Tensor:
        """Logits [B, T, V] of rows, read together; a `CheckpointError` where the code raises an error."""
        fill, reads = checkpoint.config.fill_id, checkpoint.model.anatomy.reads
        sides = ([one.source for one in rows],) if reads else ()
        ids = [padded(side, fill).to(self.device) for side in (*sides, [one.target for one in rows])]
        try:
            with torch.enable_grad(), self.device, torch.autocast(self.device.type, enabled=False):
                found = self.forward(*ids)
            found = found.detach().float().cpu()
        except Exception as error:
            problem = shown(f"{type(error).__name__}: {error}".strip().split("\n")[0])
            raise CheckpointError(
                "forward, called with ids of the shapes {shapes}, raised an error: {problem}. It has to take source "
                "ids [batch, source] and what the decoder reads [batch, target], and return logits.",
                shapes=", ".join(str(list(one.shape)) for one in ids),
                problem=problem,
            ) from error
        expected = (*ids[-1].shape, checkpoint.config.tgt_vocab_size)
        if found.shape != expected:
            raise CheckpointError(
                "forward returned a tensor of the shape {found}, expected logits of the shape {expected} (batch, "
                "target, vocabulary).",
                found=str(list(found.shape)),
                expected=str(list(expected)),
            )
        return found


SENTENCES = 12
"""Of those that are given, as many are taken; more change few verdicts, and each costs time."""
SCORED = 32
"""Those whose losses under several settings are compared: a wrong one may cost nothing on most of them."""

Origin = Literal["given", "examples", "none"]
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False)
class ParameterContext:
    """Parameters under examination: those of a model, or the tensors of a file that is none yet."""

    # Each with its name, which is that in this program's models where it is known what a tensor is.
    tensors: Callable[[], Iterable[tuple[str, Tensor]]]
    d_model: int | None = None  # None if unknown
    padding: Sequence[int] | None = None  # ids whose rows of a table may be 0; None if unknown
    pause: Callable[[], None] = lambda: None  # as of an examination
    whole: ExaminationContext | None = None  # of the model; None for tensors alone


@dataclass(frozen=True, eq=False)
class ExaminationContext:
    """A checkpoint under examination."""

    checkpoint: Checkpoint  # any, of every kind
    given: Samples | None = None  # pairs or texts that somebody gave; None if nobody did
    seed: int = 0  # decides which of many sentences are taken, and all else that is drawn
    pause: Callable[[], None] = lambda: None  # called now and then; a server serves others meanwhile
    reported: float | None = None  # the loss that the training reported, in nats per piece; None if unknown
    own: OwnCode | None = None  # the forward pass of a training that is watched; None if nobody gave it
    known: dict[Callable[[ExaminationContext], Any], Any] = field(default_factory=dict, init=False, repr=False)

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

    @cached_property
    def parameters(self) -> ParameterContext:
        """Its parameters, for the tests that read nothing else."""
        padding = [] if self.config.pad_id is None else [self.config.pad_id]
        return ParameterContext(self.model.named_parameters, self.config.d_model, padding, self.pause, self)

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


def once(work: Callable[[ExaminationContext], _Result]) -> Callable[[ExaminationContext], _Result]:
    """Decorates work on a patient that is done for the first test that needs it, and kept for the others."""

    @wraps(work)
    def found(patient: ExaminationContext) -> _Result:
        if work not in patient.known:
            patient.known[work] = work(patient)
        kept: _Result = patient.known[work]
        return kept

    return found


def _of_card(checkpoint: Checkpoint) -> Samples:
    """The card's examples, with expected outputs where it has them.

    For a model that fills masks, an example with its own mask is left out: its right piece is unknown.
    """
    card, gaps = checkpoint.card, MASK_PIECES if checkpoint.model.anatomy.fills else ()
    tried = [one for one in card.tried() if not any(gap in one for gap in gaps)]
    targets = [card.reference_of(one) for one in tried]
    return Samples(tuple(tried), tuple(one for one in targets if one) if all(targets) else ())


WIRING, BELOW = 1, 2


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
    # 0 unless other tests show its fault too; else the higher, the less likely the cause. `WIRING`, `BELOW` (the
    # computation is wrong whatever the settings are), or more.
    cause: int = 0
    # Whether a fault may follow from a wrong wiring: such a decoder may need neither the source nor most of itself.
    of_wiring: bool = False
    name: str = ""  # for programs, such as "causality": that of its function
    # What a patient shows, or its parameters alone, where that is all that the function takes; a `NotTestable` where
    # nothing can be said.
    look: Callable[[Any], DoctorTestResult] = _nothing

    def __call__(self, look: Callable[[Any], DoctorTestResult]) -> DoctorTest:
        """The test that looks at a patient so: decorates its function."""
        return replace(self, name=self.name or look.__name__, look=look)

    @property
    def of_outputs(self) -> bool:
        """Whether it looks at what the model writes, or at how well it guesses: that shows any mistake below."""
        return self.area == "behaviour" and self.cause != WIRING

    @property
    def of_parameters(self) -> bool:
        """Whether it reads parameters alone: such a test needs no answer about the model."""
        return self.area == "weights"

    def measure(self, patient: ExaminationContext | ParameterContext) -> DoctorTestResult:
        """What it found, in full."""
        if self.of_parameters and isinstance(patient, ExaminationContext):
            patient = patient.parameters
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


# ------------------------------------------------------------------------------------------------ passes over texts

LENGTH = 16
ROWS = 16
WORK = 1e10
"""Multiplications of random texts, about a second of one core; the larger the model, the fewer texts."""
MOST_TOKENS, FEWEST_TOKENS = 1024, 256


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of one length."""

    source: Tensor  # what the encoder reads [B, S]; nothing for a decoder-only model
    target: Tensor  # what the decoder reads [B, T]; nothing for an encoder-only model


def own_texts(patient: ExaminationContext) -> list[Texts]:
    """What was read and written in each run of the patient."""
    return [Texts(torch.tensor([one.src_ids]), torch.tensor([one.read_ids])) for one in patient.traces]


def random_texts(patient: ExaminationContext, *, most: int = MOST_TOKENS) -> list[Texts]:
    """Texts of pieces drawn by the context's seed: as many as a few seconds allow, of `most` tokens at most."""
    config = patient.config
    n_parameters = sum(parameter.numel() for parameter in patient.model.parameters())
    n_tokens = min(most, max(FEWEST_TOKENS, int(WORK / max(1, n_parameters))))
    length = max(1, min(LENGTH, config.max_len - len(config.source_start) - len(config.source_end) - 1))
    draw = torch.Generator().manual_seed(patient.seed)
    tokenizers = patient.checkpoint.src_tokenizer, patient.checkpoint.tgt_tokenizer
    source, target = (torch.tensor(_plain(one.size, one.is_special, set())) for one in tokenizers)

    def rows(ids: Tensor, before: tuple[int, ...], after: tuple[int, ...] = ()) -> Tensor:
        drawn = ids[torch.randint(len(ids), (ROWS, length), generator=draw)]
        first, last = (torch.tensor(one, dtype=torch.long).expand(ROWS, -1) for one in (before, after))
        return torch.cat((first, drawn, last), dim=1)

    def texts() -> Texts:
        if not patient.anatomy.reads:
            return Texts(rows(target, ()), rows(target, config.source_start))
        return Texts(rows(source, config.source_start, config.source_end), rows(target, (config.decoder_start_id,)))

    return [texts() for _ in range(-(-n_tokens // (ROWS * length)))]


def pairs_that_fit(patient: ExaminationContext) -> Iterator[SampleLoss]:
    """The patient's pairs as ids, or its texts alone: those that the model has rows and room for."""
    n_source, n_target = len(patient.model.src_table), len(patient.model.target_table)
    for i in range(len(patient.samples)):
        try:
            row = row_of(patient.checkpoint, patient.samples, i)
        except GlassformerError:
            continue
        longest = max(len(row.source), len(row.target))
        known = max(row.source, default=0) < n_source and max(row.target, default=0) < n_target
        if known and longest <= patient.config.max_len:
            yield row


def read_again(patient: ExaminationContext, texts: list[Texts], visitor: Hook) -> None:
    """Read texts with a visitor."""
    for one in texts:
        patient.pause()
        read(patient, one, tap=tap_of(visitor))


@torch.inference_mode()
def read(patient: ExaminationContext, texts: Texts, *, tap: Tap = NO_TAP) -> Tensor:
    """One pass: the last vectors of the decoder [B, T, D], or of an encoder-only model [B, S, D]."""
    if not patient.anatomy.writes:
        return patient.model.encode(texts.source, tap=tap)
    return vectors_of(patient.model, texts.source if patient.anatomy.reads else None, texts.target, tap)
