"""Logits and losses of given pieces, a few rows at a time, as logits are V wide.

Shapes: N rows, n rows of one piece of work, D d_model, V target vocabulary.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer

ROWS = 256


def logits_of(model: Transformer, hidden: Tensor, *, tap: Tap = NO_TAP) -> Iterator[Tensor]:
    """The logits of a few rows at a time [n, V], float32 at least, from the vectors before the output [N, D]."""
    precise = torch.promote_types(hidden.dtype, torch.float32)
    for rows in hidden.split(ROWS):
        yield model.project(rows[None], tap=tap)[0].to(precise)


def losses_of(model: Transformer, hidden: Tensor, wanted: Tensor) -> Tensor:
    """Loss of each piece [N] in nats, on the processor, from the vectors before the output [N, D] and the ids [N]."""
    parts = zip(logits_of(model, hidden), wanted.to(model.device).split(ROWS), strict=True)
    return torch.cat([-logits.log_softmax(dim=-1).gather(1, ids[:, None])[:, 0] for logits, ids in parts]).cpu()
