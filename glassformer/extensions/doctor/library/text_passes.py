"""Forward passes over sample and random texts, with hooks for the tests.

One pass per text, as in the recording pass of a run (`transformer.runs.recording_pass`); only the visitor keeps values:
memory is bounded by one layer. Random texts are random pieces without meaning. They reach what a few sentences do not,
and there can be any number of them.

Shapes: B texts, S source tokens, T target tokens.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.context import ExaminationContext
from transformer.analysis.losses import SampleLoss, row_of
from transformer.errors import GlassformerError
from transformer.model.taps import NO_TAP, Hook, Tap, tap_of
from transformer.text.tokenizer import AnyTokenizer

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


def random_texts(patient: ExaminationContext, *, most: int = MOST_TOKENS, longest: int = LENGTH) -> list[Texts]:
    """Texts of pieces drawn by the context's seed, as many as can be read in a few seconds.

    `most` limits all tokens, `longest` the pieces of a text.
    """
    config, checkpoint = patient.config, patient.checkpoint
    n_parameters = sum(parameter.numel() for parameter in patient.model.parameters())
    n_tokens = min(most, max(FEWEST_TOKENS, int(WORK / max(1, n_parameters))))
    length = max(1, min(longest, config.max_len - len(config.source_start) - len(config.source_end) - 1))
    draw = torch.Generator().manual_seed(patient.seed)
    return [
        _drawn(patient, ordinary(checkpoint.src_tokenizer), ordinary(checkpoint.tgt_tokenizer), length, draw)
        for _ in range(-(-n_tokens // (ROWS * length)))
    ]


def ordinary(tokenizer: AnyTokenizer) -> Tensor:
    """The ids of all pieces that are not special; all, if there are no others [N]."""
    ids = [i for i in range(tokenizer.size) if not tokenizer.is_special(i)]
    return torch.tensor(ids or list(range(tokenizer.size)))


def _drawn(patient: ExaminationContext, source: Tensor, target: Tensor, length: int, draw: torch.Generator) -> Texts:
    config = patient.config

    def rows(ids: Tensor, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor:
        drawn = ids[torch.randint(len(ids), (ROWS, length), generator=draw)]
        around = (torch.tensor(one, dtype=torch.long).expand(ROWS, -1) for one in (before, after))
        first, last = around
        return torch.cat((first, drawn, last), dim=1)

    if not patient.anatomy.reads:
        return Texts(rows(target, (), ()), rows(target, config.source_start, ()))
    return Texts(rows(source, config.source_start, config.source_end), rows(target, (config.decoder_start_id,), ()))


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
    model = patient.model
    memory = model.encode(texts.source, tap=tap) if patient.anatomy.reads else None
    if not patient.anatomy.writes:
        assert memory is not None  # a model has one stack at least
        return memory
    return model.decode(texts.target, memory, model.source_mask(texts.source), tap=tap)
