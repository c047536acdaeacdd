"""Attention maps one layer at a time, whether a run keeps them all or, as that of a long text, none of them.

Panels ask for one layer, or say what they make of each: a mean, a maximum, tiles. Of a run that keeps its maps they
get it at once; of another it is computed in the model's thread and kept for all visitors, by the work's key.

Knows nothing of Streamlit.
"""

from collections.abc import Callable, Hashable
from typing import Protocol

import numpy as np

from transformer.model.anatomy import Kind

Work = Callable[[np.ndarray, int], np.ndarray]
"""Makes of a layer's maps [head, query, key] and its place, from 0, what is kept of them."""


class ByLayer(Protocol):
    """Makes the maps of a run again; `glassformer.runs.loading.by_layer` does, given a checkpoint and a trace."""

    def __call__(self, kind: Kind, work: Work, *, key: Hashable, layers: tuple[int, ...] | None) -> list[np.ndarray]:
        """What the work makes of each layer, or of those that are named; the key says which work it is."""


def whole(maps: np.ndarray, layer: int) -> np.ndarray:
    """All heads of a layer."""
    return maps


def mean(maps: np.ndarray, layer: int) -> np.ndarray:
    """The mean of a layer's heads [query, key]."""
    return np.asarray(maps.mean(axis=0))


def maximum(maps: np.ndarray, layer: int) -> np.ndarray:
    """The largest weight of any of a layer's heads [query, key]."""
    return np.asarray(maps.max(axis=0))
