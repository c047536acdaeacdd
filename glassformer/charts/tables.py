"""Maps as the columns of a table, one row per cell: all cells, with the exact numbers.

What is sent to a browser may be rounded, in blocks, or without weights too weak for a line. A saved table is not.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer.i18n import say

WEIGHT = say("weight")
CLOSED = say("closed by the mask")
MOST_ROWS = 2**24
"""Of one table: 512 tokens of 6 layers with 8 heads are 12.6 million. More would take gigabytes to write."""
NOT_FINITE = say("not a finite number")


def map_columns(
    weights: np.ndarray,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    query_axis: str = say("query"),
    key_axis: str = say("key"),
    allowed: np.ndarray | None = None,
    mask_reason: str | Sequence[str] = CLOSED,
    value_name: str = WEIGHT,
) -> dict[str, Any]:
    """The cells of a map, or of several maps of the same pieces in turn: weights [..., query, key].

    Cells where `allowed`, bool and broadcast to the weights, is False have a reason and no number. Returns the
    columns by name; float32 stays float32.
    """
    n_rows, n_columns = len(queries), len(keys)
    open_cells = np.ones((n_rows, n_columns), bool) if allowed is None else np.asarray(allowed, dtype=bool)
    values = np.where(open_cells, np.asarray(weights, dtype=np.float32), np.float32(np.nan))
    n_maps = int(np.prod(values.shape[:-2]))
    notes = np.full(values.shape, "", dtype=object)
    notes[~np.isfinite(values)] = NOT_FINITE
    reasons = np.array(mask_reason, dtype=object)[..., None]  # of all, or of each row
    notes = np.where(np.broadcast_to(open_cells, values.shape), notes, reasons)
    row = np.tile(np.repeat(np.arange(n_rows), n_columns), n_maps)
    column = np.tile(np.arange(n_columns), n_maps * n_rows)
    table = {
        say("{title} number", title=query_axis): row + 1,
        query_axis: np.array(queries, dtype=object)[row],
        say("{title} number", title=key_axis): column + 1,
        key_axis: np.array(keys, dtype=object)[column],
        value_name: values.reshape(-1),
    }
    return table | ({say("note"): notes.reshape(-1)} if notes.astype(bool).any() else {})


def too_many(count: int) -> dict[str, Any]:
    """What is shown instead of a table that would have too many weights."""
    note = say(
        "These heads have {count:,} weights, but a table has at most {most:,} rows, one per weight. Save the "
        "weights of a single head.",
        count=count,
        most=MOST_ROWS,
    )
    return {say("note"): np.array([note], dtype=object)}


def heads_columns(
    maps: np.ndarray, *, layers: Sequence[int | str], heads: Sequence[int | str], **of_maps: Any
) -> dict[str, Any]:
    """The cells of maps [layer, head, query, key], head by head; beyond `MOST_ROWS` one cell that says so.

    `layers` and `heads` are their names: a number, or that it is a mean. The rest is as in `map_columns`.
    """
    if maps.size > MOST_ROWS:
        return too_many(maps.size)
    cells = int(np.prod(maps.shape[2:]))
    which = {
        say("layer"): np.repeat(np.array(layers, dtype=object), len(heads) * cells),
        say("head"): np.tile(np.repeat(np.array(heads, dtype=object), cells), len(layers)),
    }
    return which | map_columns(maps, **of_maps)
