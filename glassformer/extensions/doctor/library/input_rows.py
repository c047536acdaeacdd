"""Rows of ids that tests of the wiring let a model, or the own pass of a training, read.

Wiring does not depend on the text, so short texts are filled with random pieces, and a model without sentences reads
random pieces only. Differences are in units of the numbers' spread (`moved`): about 1 where nothing is left of them,
1e-6 where only the order of sums changed.

Shapes: B rows, S source tokens, T target tokens, V target vocabulary, D d_model.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.analysis.losses import Samples, text_ids
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError, DataError, shown
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs.reading import padded
from transformer.runs.recording_pass import check_recorded

Forward = Callable[..., Tensor]
"""Logits [B, T, V] for source ids [B, S] and what the decoder reads [B, T]; a model of one stack has one argument.
Both are padded on the right with the padding id."""
AGREES, COARSE = 1e-3, 0.1  # the first is that of `wiring`; bfloat16 has three digits
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


@torch.inference_mode()
def result(model: Transformer, src: Tensor, tgt: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
    """Logits [B, T, V] of a pass, or the vectors [B, S, D] of an encoder-only model with any head; on the CPU.

    The encoder reads `src` [B, S], the decoder `tgt` [B, T]. A `QueryError` names the first site that is not finite.
    """

    def made(tap: Tap) -> Tensor:
        found: Tensor = model(src, tgt, tap=tap) if model.anatomy.writes else model.encode(src, tap=tap)
        return found

    values = made(tap)
    check_recorded((values,), made, tap=tap)
    return values.cpu()


def moved(before: Tensor, after: Tensor) -> Tensor:
    """How far rows move [...]: the largest |difference|, in units of the spread of what was there [..., V]."""
    spread = before.float().std(dim=-1).mean().clamp_min(1e-30)
    return (after - before).abs().amax(dim=-1) / spread


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

    def difference(self, checkpoint: Checkpoint, rows: Sequence[InputRow]) -> float:
        """How far its logits are from this program's, in units of their spread, for targets of one token."""
        far = 0.0
        for one in rows:
            first = InputRow(one.source, one.target[:1])
            ours = result(checkpoint.model, torch.tensor([first.source]), torch.tensor([first.target]))
            far = max(far, float(moved(ours, self.logits(checkpoint, [first])).max().nan_to_num(torch.inf)))
        return far
