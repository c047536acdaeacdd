"""Steps on a GPU, recorded once and played back: a small model is otherwise slower to ask for than to compute.

A step of a model of a few million parameters is some thousand kernels of a few microseconds each, and Python takes
longer to start one than the GPU to finish it. A CUDA graph starts all of them at once. It holds for one shape of a
batch, so shapes are made few: sources are padded to a multiple of `SOURCE_STEP`, and a batch that is not full gets
rows of padding, which weigh nothing. A shape that is met for the first time is learned from as usual, and recorded
when it is met again. What a step draws still depends on torch's seed alone, which a played graph reads anew.

Source: Ng and others, "Accelerating PyTorch with CUDA Graphs" (pytorch.org, 2021).

Shapes: B pairs, S source tokens, T target tokens.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.extensions.training.library.data import Batch
from transformer.model.config import ModelConfig

SOURCE_STEP = 8
MOST = 200  # shapes that are recorded; others are learned from as usual

Shape = tuple[torch.Size, torch.Size]


class Graphed:
    """Plays the steps of a training back.

    `step` learns from a batch on the GPU and returns its loss. All that it changes is in the GPU's memory, and it
    reads nothing back.
    """

    def __init__(self, step: Callable[[Batch], Tensor]) -> None:
        self._step = step
        self._stream = torch.cuda.Stream()
        self._met: set[Shape] = set()
        self._recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, Batch, Tensor]] = {}
        self._pool: Any = None  # the memory that all graphs share, as only one is played at a time

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from a batch in the CPU's memory; returns its loss."""
        shape = batch.src.shape, batch.tgt_in.shape
        pinned = Batch(batch.src.pin_memory(), batch.tgt_in.pin_memory(), batch.tgt_out.pin_memory())
        if shape not in self._recorded:
            if shape not in self._met or len(self._recorded) >= MOST:
                self._met.add(shape)
                return self._as_usual(pinned)
            self._recorded[shape] = self._record(pinned)
        graph, place, loss = self._recorded[shape]
        for name in ("src", "tgt_in", "tgt_out"):
            getattr(place, name).copy_(getattr(pinned, name), non_blocking=True)
        graph.replay()
        return loss.clone()

    def _as_usual(self, batch: Batch) -> Tensor:
        """Learn from a batch on the stream that records, which torch wants to have been used before."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = self._step(batch.to(torch.device("cuda")))
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _record(self, batch: Batch) -> tuple[torch.cuda.CUDAGraph, Batch, Tensor]:
        place = batch.to(torch.device("cuda"))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = self._step(place)
        self._pool = graph.pool()
        return graph, place, loss


def filled(batch: Batch, config: ModelConfig, *, batch_tokens: int) -> Batch:
    """The same batch with as many rows as fit into `batch_tokens`, and with sources of few different lengths.

    The rows are copies of the first in which nothing is to be predicted.
    """
    rows = max(batch_tokens // batch.tgt_out.size(1) - len(batch.src), 0)
    width = min(-(-batch.src.size(1) // SOURCE_STEP) * SOURCE_STEP, config.max_len)
    added = max(width - batch.src.size(1), 0) if batch.src.size(1) and batch.tgt_in.size(1) else 0
    src, tgt_in = (torch.cat((ids, ids[:1].expand(rows, -1))) for ids in (batch.src, batch.tgt_in))
    return Batch(
        F.pad(src, (0, added), value=config.fill_id),
        tgt_in,
        F.pad(batch.tgt_out, (0, 0, 0, rows), value=config.fill_id),
        batch.n_tokens,
    )
