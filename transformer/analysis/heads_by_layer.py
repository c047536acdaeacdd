"""The measures of `head_statistics`, taken one layer after another.

Each measure is of one head, so that the numbers are the same as of all layers at once; only one layer's maps are in
memory at a time, also where the run keeps none.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from transformer.analysis.head_statistics import NAMES, Measure, Name, measure
from transformer.model.anatomy import Kind
from transformer.runs.by_layer import each_layer
from transformer.runs.runnable import Runnable
from transformer.runs.trace import Trace


def measure_by_layer(
    checkpoint: Runnable, trace: Trace, kind: Kind, *, shares: np.ndarray | None = None, n_rows: int | None = None
) -> dict[Name, Measure]:
    """All measures of every head of one kind.

    Args:
        checkpoint: What the trace was made with.
        shares, n_rows: As for `measure`.

    Returns:
        The measures, without those that no row has.
    """

    def of_layer(maps: np.ndarray, layer: int) -> dict[Name, Measure]:
        alone = replace(
            trace, weights={**trace.weights, kind: maps[None]}, masks={**trace.masks, kind: trace.mask(kind, layer)}
        )  # [1, head, query, key]
        share = None if shares is None else shares[layer : layer + 1]
        return measure(alone, kind, eos_id=checkpoint.config.eos_id, shares=share, n_rows=n_rows)

    layers = each_layer(checkpoint, trace, kind, of_layer)
    n_heads = trace.maps(kind).shape[1]
    return {name: _joined(name, layers, n_heads) for name in NAMES if any(name in layer for layer in layers)}


def _joined(name: Name, layers: list[dict[Name, Measure]], n_heads: int) -> Measure:
    """One measure of all layers: NaN where a layer does not have it."""
    found = [layer.get(name) for layer in layers]
    there = next(one for one in found if one is not None)
    missing = np.full((1, n_heads, len(there.rows)), np.nan)
    values = np.concatenate([missing if one is None else one.values for one in found])  # [layer, head, query]
    rows = np.logical_or.reduce([one.rows for one in found if one is not None])
    return Measure(values, rows)
