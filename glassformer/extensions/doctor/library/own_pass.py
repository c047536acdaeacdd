"""The training's own forward pass, called as the training calls it, on rows of the patient.

Gradients are on, as some layers of torch compute otherwise without.

Shapes: B rows, S source tokens, T target tokens, V target vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from glassformer.extensions.doctor.library.read_rows import Row, moved, result
from transformer.checkpoint.load import Checkpoint
from transformer.errors import CheckpointError, shown
from transformer.runs.reading import padded

Forward = Callable[..., Tensor]
"""Logits [B, T, V] for source ids [B, S] and what the decoder reads [B, T]; a model of one stack has one argument.
Both are padded on the right with the padding id."""
AGREES, COARSE = 1e-3, 0.1  # the first is that of `wiring`; bfloat16 has three digits
FULL = 4  # bytes of a number


@dataclass(frozen=True)
class OwnCode:
    """The pass that the training makes."""

    forward: Forward  # as the user gave it
    device: torch.device  # where the model is
    dtype: torch.dtype  # of its parameters

    @property
    def agrees(self) -> float:
        """How far logits that are computed in two ways may be apart, in units of their spread."""
        return AGREES if self.dtype.itemsize >= FULL else COARSE

    def logits(self, checkpoint: Checkpoint, rows: Sequence[Row]) -> Tensor:
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

    def difference(self, checkpoint: Checkpoint, rows: Sequence[Row]) -> float:
        """How far its logits are from this program's, in units of their spread, for targets of one token."""
        far = 0.0
        for one in rows:
            first = Row(one.source, one.target[:1])
            ours = result(checkpoint.model, torch.tensor([first.source]), torch.tensor([first.target]))
            far = max(far, float(moved(ours, self.logits(checkpoint, [first])).max().nan_to_num(torch.inf)))
        return far
