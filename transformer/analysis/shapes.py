"""The shape of every value of a pass: recorded while the model runs, without keeping the values."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from transformer.model.taps import Onlooker, tap_of
from transformer.model.transformer import Transformer

Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Pass:
    """The shapes of one teacher-forced pass; equal only to itself, so results computed from it can be cached."""

    src_ids: Shape  # shapes of the two inputs, [batch, token]
    tgt_ids: Shape  # shapes of the two inputs, [batch, token]
    # Every site of `transformer.tap.SITES` that the model has, in the order of the pass, with the shape that it had,
    # the batch axis included.
    sites: dict[str, Shape]


@torch.inference_mode()
def shapes_of(model: Transformer, src_ids: Sequence[int], tgt_ids: Sequence[int]) -> Pass:
    """Run one sentence and record the shape of every value; the decoder reads its start id or prompt first."""
    seen: dict[str, Shape] = {}
    keep = Onlooker(["*"], lambda site, value: seen.update({site: tuple(value.shape)}))
    src, tgt = (torch.tensor([list(ids)], dtype=torch.long) for ids in (src_ids, tgt_ids))
    model(src, tgt, tap=tap_of(keep))
    return Pass(tuple(src.shape), tuple(tgt.shape), seen)
