"""Which weight of a run to show first, if nobody has chosen one: in a row neither flat nor all on one key.

The row is that of the step at which the model was least sure (the highest entropy); in the encoder, which has no
steps, it may be any row. The head is the one whose largest weight in that row is nearest to `MIDDLE`, and the key has
that weight. It depends only on the run: the same run has the same cell.

Knows nothing of drawing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from transformer.model.anatomy import EVERY_PART, Kind
from transformer.runs.trace import Trace

MIDDLE: Final = 0.6
"""A largest weight that leaves something for the other keys."""

EQUAL: Final = 1e-4
"""Weights, and bits, that are nearer to each other are equal: rounding, which differs by processor, decides none."""

LEAST_KEYS: Final = 3
"""A row with fewer open keys has nothing to share out."""


Tops = Callable[[np.ndarray, int], np.ndarray]
"""Makes of a layer's maps [head, query, key] the largest weight of each row and its key, [2, head, row]."""


@dataclass(frozen=True)
class Cell:
    """One weight: layer, head, row (query) and column (key), all from 0."""

    layer: int
    head: int
    query: int
    key: int


def worth_seeing(
    trace: Trace,
    kind: Kind,
    *,
    n_steps: int | None = None,
    layer: int | None = None,
    each: Callable[[Tops, tuple[int, ...]], Sequence[np.ndarray]] | None = None,
) -> Cell:
    """The cell to show first, among the steps that may be shown and all layers, or one layer, from 0.

    `each` supplies the maps of layers, one after the other, if the trace keeps none.
    """
    maps = trace.maps(kind)  # [layer, head, query, key]
    layers = tuple(range(len(maps))) if layer is None else (layer,)
    rows = _rows(trace, kind, trace.n_steps if n_steps is None else n_steps)

    def tops(of_layer: np.ndarray, _: int) -> np.ndarray:
        chosen = of_layer[:, rows]  # [head, row, key]
        highest = chosen.max(axis=-1)
        return np.stack([highest, (chosen >= highest[..., None] - EQUAL).argmax(axis=-1)])

    found = np.stack([tops(maps[one], one) for one in layers] if each is None else each(tops, layers))
    largest, keys = found[:, 0], found[:, 1]  # [layer, head, row]
    apart = np.abs(largest - MIDDLE)
    place = np.unravel_index((apart <= apart.min() + EQUAL).argmax(), largest.shape)
    return Cell(layers[place[0]], int(place[1]), rows[place[2]], int(keys[place]))


def hardest_step(entropies: np.ndarray, among: Sequence[int]) -> int:
    """The step at which the model was least sure, by entropies in bits of one or more steps; the first of equals."""
    highest = max(float(entropies[step]) for step in among)
    return next((step for step in among if entropies[step] >= highest - EQUAL), among[0])


def _rows(trace: Trace, kind: Kind, n_steps: int) -> list[int]:
    """The rows to choose from: one of the decoder, or every one of the encoder."""
    stack = EVERY_PART.attention(kind).stack
    if stack == "encoder" or not n_steps:
        return list(range(trace.n_tokens(stack)))
    open_keys = trace.mask(kind).sum(axis=-1)  # [query]
    steps = range(n_steps)
    full = [step for step in steps if open_keys[trace.row_of(step)] >= LEAST_KEYS]
    return [trace.row_of(hardest_step(trace.entropies(), full or steps))]
