"""Steps on a GPU, recorded once and played back: a small model is otherwise slower to ask for than to compute.

A step of a model of a few million parameters is some thousand kernels of a few microseconds each, and Python takes
longer to start one than the GPU to finish it. A CUDA graph starts all of them at once. It holds for one shape of a
batch, so shapes are made few: sources are padded to a multiple of `SOURCE_STEP`, and a batch that is not full gets
rows of padding, which weigh nothing. A shape that is met for the first time is learned from as usual, and recorded when
it is met again. What a step draws still depends on torch's seed alone, which a played graph reads anew.

Source: Ng et al., "Accelerating PyTorch with CUDA Graphs" (pytorch.org, 2021).

Shapes: B pairs, S source tokens, T target tokens.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer.training.data import Batch

SOURCE_STEP = 8
MOST = 200  # shapes that are recorded; others are learned from as usual

Shape = tuple[torch.Size, torch.Size]


class Graphed:
    """Plays the steps of a training back; `step` learns from a batch on the GPU and returns its loss, unsynchronised.

    All that `step` changes lives on the GPU, and it reads nothing back.
    """

    def __init__(self, step: Callable[[Batch], Tensor]) -> None:
        self._step = step
        self._stream = torch.cuda.Stream()
        self._met: set[Shape] = set()
        self._recorded: dict[Shape, tuple[torch.cuda.CUDAGraph, Batch, Tensor]] = {}
        self._pool: tuple[int, int] | None = None

    def __call__(self, batch: Batch) -> Tensor:
        """Learn from a batch; the loss is overwritten by the next step of this shape."""
        shape = batch.src.shape, batch.tgt_in.shape
        if shape not in self._recorded:
            if shape not in self._met or len(self._recorded) >= MOST:
                self._met.add(shape)
                return self._as_usual(batch)
            self._recorded[shape] = self._record(batch)
        graph, place, loss = self._recorded[shape]
        for name in ("src", "tgt_in", "tgt_out"):
            getattr(place, name).copy_(getattr(batch, name), non_blocking=True)
        graph.replay()
        return loss

    def _as_usual(self, batch: Batch) -> Tensor:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            loss = self._step(batch)
        torch.cuda.current_stream().wait_stream(self._stream)
        return loss

    def _record(self, batch: Batch) -> tuple[torch.cuda.CUDAGraph, Batch, Tensor]:
        place = Batch(batch.src.clone(), batch.tgt_in.clone(), batch.tgt_out.clone())
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
            loss = self._step(place)
        self._pool = graph.pool()
        return graph, place, loss
