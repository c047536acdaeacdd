"""Packs many maps as one byte per cell.

All heads of all layers are tens of thousands of numbers; as 32-bit floats with the names of their pieces they would
be megabytes. A byte holds a weight as one of 251 steps of the scale, or marks a missing one, and each piece is named
once. So unpacked numbers are rounded to 1/250 of the scale. `glassformer/components/plotly/grid.js` unpacks them in
the browser, `unpacked` for a notebook.
"""

import base64
from dataclasses import dataclass

import numpy as np

from glassformer.charts.theme import Spec

GRID, GRID_CLOSED = "grid", "grid-closed"
"""Mark the traces of a figure with `layout.meta.grid`: its weights, and its closed cells."""

_STEPS = 250
_NO_NUMBER, _CLOSED = 254, 255
_NO_WEIGHT, _CLOSED_WEIGHT = np.float32(-1), np.float32(-2)  # smaller than any weight: weights win


@dataclass(frozen=True)
class Blocks:
    """Maps in the form in which they are drawn."""

    weights: np.ndarray  # [layer, head, row, column]; NaN where there is no number
    # bool [layer, row, column], [1, row, column] if all layers are alike; False where all that a block holds is
    # closed.
    allowed: np.ndarray
    size: int  # A block is `size` x `size` cells, with the largest weight among them


def block_size(shape: tuple[int, ...], most_cells: int) -> int:
    """Rows and columns of a block of maps [layer, head, query, key], few enough for `most_cells` blocks in all."""
    n_layers, n_heads, n_queries, n_keys = shape
    size = 1
    while n_layers * n_heads * -(-n_queries // size) * -(-n_keys // size) > most_cells:
        size += 1
    return size


def pooled(weights: np.ndarray, allowed: np.ndarray, size: int) -> Blocks:
    """Merge blocks of `size` × `size` cells of weights [layer, head, query, key], which are not empty.

    `allowed` is bool [query, key] or [layer, query, key], True = may attend.
    """
    n_queries, n_keys = weights.shape[2:]
    seen = weights
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(weights.sum())  # cheaper than a look at millions of cells
    if not finite:
        seen = np.where(np.isfinite(weights), weights, _NO_WEIGHT)
    if not allowed.all():
        seen = np.where(allowed if allowed.ndim == 2 else allowed[:, None], seen, _CLOSED_WEIGHT)
    edges = [np.arange(0, n, size) for n in (n_queries, n_keys)]
    largest = np.maximum.reduceat(np.maximum.reduceat(seen, edges[0], axis=2), edges[1], axis=3)
    return Blocks(np.where(largest < 0, np.nan, largest), largest[:, 0] > _CLOSED_WEIGHT, size)


def open_blocks(allowed: np.ndarray, size: int) -> np.ndarray:
    """Which blocks have an open cell, as in `Blocks.allowed`; `allowed` is as in `pooled`."""
    each = allowed if allowed.ndim == 3 else allowed[None]
    edges = [np.arange(0, n, size) for n in each.shape[1:]]
    return np.asarray(np.logical_or.reduceat(np.logical_or.reduceat(each, edges[0], axis=1), edges[1], axis=2))


def _tops(blocks: Blocks) -> np.ndarray:
    """The largest weight of each head [layer, head]."""
    tops: np.ndarray = np.nanmax(np.nan_to_num(blocks.weights), axis=(2, 3))
    return np.where(tops > 0, tops, 1).astype(np.float32)


def pack(blocks: Blocks, *, own_scale: bool, least: float) -> Spec:
    """Write maps as one byte per cell.

    `own_scale`: each map has its own scale, up to its largest weight, instead of 0 to 1 for all. `least` is the
    start of a logarithmic scale as a share of its end, 0 for a linear scale.

    Returns `codes`, base64 of [layer row, head column]; `tops`, ends of the scales, one for all or one per map;
    `least`.
    """
    tops = _tops(blocks) if own_scale else np.ones((1, 1), dtype=np.float32)
    codes = base64.b64encode(_codes(blocks, tops, least).tobytes()).decode("ascii")
    return {"codes": codes, "tops": [float(top) for top in tops.ravel()], "least": least}


def _codes(blocks: Blocks, tops: np.ndarray, least: float) -> np.ndarray:
    """A byte for each cell, [layer row, head column]: its weight in steps of the scale, or why there is none."""
    share = np.nan_to_num(blocks.weights / tops[:, :, None, None])
    if least:
        share = 1 - np.log10(np.maximum(share, least)) / np.log10(least)
    codes = np.rint(np.clip(share, 0, 1) * _STEPS).astype(np.uint8)
    codes[np.isnan(blocks.weights)] = _NO_NUMBER
    codes[np.broadcast_to(~blocks.allowed[:, None], codes.shape)] = _CLOSED
    n_layers, n_heads, rows, columns = codes.shape
    return codes.transpose(0, 2, 1, 3).reshape(n_layers * rows, n_heads * columns)


def unpacked(spec: Spec) -> Spec:
    """Give every cell its number and its names; in the app the browser does that.

    `layout.meta.grid` is what `pack` returns, and the names of `layers`, `heads`, `queries` and `keys`. Traces with
    the meta `GRID` hold the weights, those with `GRID_CLOSED` the closed cells.
    """
    packed = spec["layout"].get("meta", {}).get(GRID)
    if packed is None:
        return spec
    rows = [(layer, query) for layer in packed["layers"] for query in packed["queries"]]
    columns = [(head, key) for head in packed["heads"] for key in packed["keys"]]
    codes = np.frombuffer(base64.b64decode(packed["codes"]), np.uint8).reshape(len(rows), len(columns))
    shares = np.where(codes <= _STEPS, codes / _STEPS, np.nan)
    tops = np.resize(packed["tops"], (len(packed["layers"]), len(packed["heads"])))  # one may be that of all
    each_top = np.kron(tops, np.ones((len(packed["queries"]), len(packed["keys"]))))
    values = each_top * (packed["least"] ** (1 - shares) if packed["least"] else shares)
    labels = np.empty((*codes.shape, 3), dtype=object)
    for row, row_names in enumerate(rows):
        for column, column_names in enumerate(columns):
            labels[row, column] = (row_names, column_names, values[row, column])
    drawn = {GRID: shares, GRID_CLOSED: np.where(codes == _CLOSED, 0.0, np.nan)}
    traces = [{**trace, "z": drawn[trace["meta"]], "customdata": labels} for trace in spec["data"]]
    return {"data": traces, "layout": spec["layout"]}
