"""Heat map of queries and keys: masked cells, log scale, rounding, tables of weights, lines at step and prompt.

Cells that the mask closes are hatched and say why; they are never shown as 0.00, because nothing was computed there.
The chart does not know which layer or head it shows: the title says that.

Hover shows four digits, so the numbers of a large map keep five while that is affordable, and three in larger ones. A
saved table has all cells, with the exact numbers.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import GREY, along, cells, frame, hatching, numbered
from glassformer.charts.hover import italic, of_cell, with_number
from glassformer.charts.theme import CLOSED, MARK_COLOR, Colour, Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import joined, say

WEIGHT = say("weight")
NOT_FINITE = say("not a finite number")
MOST_EXACT = 4_096
"""Cells of the largest map whose numbers stay as they are; a larger one has five digits, in three bytes a number."""
MOST_FIVE = 65_536
"""Cells of the largest map that has five digits; a larger one has three, in two bytes a number."""
HALF_DIGITS, THREE_BYTE_DIGITS = 3, 5


def shortened(drawn: np.ndarray) -> tuple[np.ndarray, int | None]:
    """Round the numbers of a map, float32 of any shape, if it is large; NaN and infinity stay.

    Returns the numbers, and the number of digits left; None if nothing was lost. With five digits they are still
    float32 but end in a byte of zeros, which `figure_json` leaves out; with three they are float16, if they are in
    its range.
    """
    if drawn.size <= MOST_EXACT:
        return drawn, None
    if drawn.size <= MOST_FIVE:
        # float32 with 16 bits of fraction
        rounded = ((drawn.view(np.uint32) + np.uint32(0x80)) & np.uint32(0xFFFFFF00)).view(np.float32)
        short, digits = np.where(np.isfinite(drawn) & np.isfinite(rounded), rounded, drawn), THREE_BYTE_DIGITS
    elif np.nanmax(np.abs(drawn), initial=0) < np.finfo(np.float16).max:
        short, digits = drawn.astype(np.float16), HALF_DIGITS
    else:
        return drawn, None
    return short, None if np.array_equal(short, drawn, equal_nan=True) else digits


ROWS_AND_COLUMNS = say(
    "Each row is a token that reads (query), each column is a token that is read (key): the stronger a cell's colour, "
    "the more the row takes from the column."
)
HOW_TO_READ = joined(" ", [ROWS_AND_COLUMNS, say("A row's weights sum to 1.")])
HOW_TO_READ_CLOSED = say("Hatched cells are closed by the mask.")

LOG_FLOOR = 1e-4
"""Where a logarithmic scale begins: what is smaller looks like this."""
NUMBER = ".4~g"
"""How hover writes a number: four significant digits, so that nothing small reads as 0."""

_ROUNDING = 0.01  # weights kept in half precision sum to 1 within this
_MOST_NAMED = 4
ROUNDED = say("numbers are rounded to three significant digits")
_MOST_GAPPED = 64  # above this many rows or columns a gap between cells would eat the cells


def heatmap_spec(
    weights: np.ndarray,
    *,
    queries: Sequence[str],
    keys: Sequence[str],
    title: str,
    query_axis: str = say("Query"),
    key_axis: str = say("Key"),
    allowed: np.ndarray | None,
    mask_reason: str | Sequence[str] = CLOSED,
    marked_row: int | None = None,
    marked_cell: tuple[int, int] | None = None,
    colour: Colour = "neutral",
    value_name: str = WEIGHT,
    limits: tuple[float, float] | None = (0.0, 1.0),
    log: bool = False,
    rows_sum_to_one: bool = True,
    note: str = "",
    number: str = NUMBER,
    named: tuple[bool, bool] = (True, True),
) -> Spec:
    """Draw a map [query, key] with row 0 on top; values in closed cells are ignored.

    `allowed` is bool [query, key]. None means that nothing is closed, so pass it wherever there is a mask: otherwise
    closed cells are drawn as 0; `mask_reason` is that of all of them, or of each row's. `limits` are the ends of the
    colour scale; None takes the smallest and largest value. With `log`, for values that are never negative, colours
    follow the logarithm from `LOG_FLOOR` to the upper limit, and smaller values look like `LOG_FLOOR`; hover still
    shows the value itself. If `rows_sum_to_one` and a row does not, the chart says which. `number` is how hover writes
    a number, and `named` whether it names the axis of a row and of a column.

    The numbers of a large map are rounded (`shortened`); if hover then has fewer than four digits,
    the map says so. In that case `table` makes the columns of a table with the exact numbers. Raises ValueError if
    the sizes do not fit together, or a value on a logarithmic scale is negative.
    """
    values, expected = np.asarray(weights, dtype=np.float32), (len(queries), len(keys))
    open_cells = np.ones(values.shape, bool) if allowed is None else np.asarray(allowed, dtype=bool)
    if values.shape != expected:
        raise ValueError(f"The map is {values.shape}, its labels {expected}: give one label for each row and column.")
    if open_cells.shape != expected:
        raise ValueError(f"The mask is {open_cells.shape}, the map {expected}: give a mask of the same size.")
    layout = _layout(queries, keys, title, query_axis, key_axis)
    if not values.size:
        return {"data": [], "layout": layout}
    drawn = np.where(open_cells, values, np.nan)
    names = (query_axis if named[0] else "", key_axis if named[1] else "")
    low, high = limits if limits is not None else ends_of(drawn)
    ends, bar = _log_scale(drawn, high, value_name) if log else ((low, high), colour_bar(literal(value_name)))
    sent, digits = shortened(drawn)
    name, field = literal(value_name), "customdata[2]" if log else "z"
    form = ".3~g" if digits == HALF_DIGITS else number
    says = of_cell(names, with_number(name, f"%{{{field}:{form}}}"))
    data = [cells(sent, ends, theme.SCALES[colour], says, bar=bar, gaps=_gaps(sent)) | {"hoverongaps": False}]
    data[0]["name"] = say("{value} ({digits} digits)", value=name, digits=digits) if digits else name
    if rows_sum_to_one:
        layout["meta"]["cells"]["weights"] = True  # for whom the keyboard leads over it
    if log:
        layout["meta"]["cells"]["floor"] = LOG_FLOOR
    if not open_cells.all():
        data += [_closed_cells(closed, names, why) for why, closed in _by_reason(~open_cells, mask_reason)]
        data.append(hatching(*_rectangles(~open_cells).T))
    missing = open_cells & ~np.isfinite(values)
    if missing.any():
        data.append(_closed_cells(missing, names, NOT_FINITE))
    layout["shapes"] = _frames(values.shape, marked_row, marked_cell)
    said = [literal(note)] + [ROUNDED] * (digits == HALF_DIGITS) + _odd_sums(drawn, open_cells) * rows_sum_to_one
    subtitle(layout, said)
    if digits is None:
        return {"data": data, "layout": layout}
    columns = partial(map_columns, drawn, queries=queries, keys=keys, query_axis=query_axis, key_axis=key_axis,
                      allowed=open_cells, mask_reason=mask_reason, value_name=value_name)  # fmt: skip
    return {"data": data, "layout": layout, "table": columns}


def _layout(queries: Sequence[str], keys: Sequence[str], title: str, query_axis: str, key_axis: str) -> dict[str, Any]:
    layout = base_layout(title, key_axis, query_axis)
    # Numbering the revisions by the pieces keeps a zoom while stepping and drops it for another sentence.
    along(layout, keys)
    along(layout, queries, axis="yaxis")
    layout["height"] = int(np.clip(150 + 26 * len(queries), 240, 640))
    layout["meta"]["cells"] = {"rows": numbered(queries), "columns": numbered(keys)}
    return layout


def _log_scale(drawn: np.ndarray, high: float, value_name: str) -> tuple[tuple[float, float], Spec]:
    """Decades from the floor to the upper limit; the browser takes the logarithms (`theme.CELLS`)."""
    if (drawn < 0).any():
        raise ValueError(f"The map has values down to {np.nanmin(drawn):g}: a logarithmic scale needs 0 or more.")
    top = max(high, 10 * LOG_FLOOR) if np.isfinite(high) else 1.0
    first, last = np.log10(LOG_FLOOR), np.log10(top)
    decades = [*range(round(first), int(np.floor(last + 1e-9)) + 1)]
    words = [f"≤ {LOG_FLOOR:g}", *(f"{10.0**decade:g}" for decade in decades[1:])]
    if last - decades[-1] > 0.15:  # the end of the scale, unless a decade is there
        decades, words = [*decades, float(last)], [*words, f"{top:.2g}"]
    title = say("{value}, logarithmic", value=literal(value_name))
    return (float(first), float(last)), colour_bar(title, marks=(decades, words))


def _gaps(values: np.ndarray) -> tuple[int, int]:
    """A hairline between cells while they are large enough."""
    gap = 1 if max(values.shape) <= _MOST_GAPPED else 0
    return gap, gap


def ends_of(values: np.ndarray, none: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """The least and the largest number; `none` where there is none."""
    there = values[np.isfinite(values)]
    return (float(there.min()) + 0.0, float(there.max()) + 0.0) if there.size else none  # −0 is 0


def _by_reason(closed: np.ndarray, reason: str | Sequence[str]) -> Iterator[tuple[str, np.ndarray]]:
    if isinstance(reason, str):
        yield reason, closed
        return
    for one in dict.fromkeys(reason):
        there = closed & np.array([other == one for other in reason])[:, None]
        if there.any():
            yield one, there


def _closed_cells(closed: np.ndarray, names: tuple[str, str], reason: str) -> Spec:
    there = np.where(closed, 0.0, np.nan).astype(np.float32)
    found = cells(there, (0, 1), GREY, of_cell(names, italic(reason)), gaps=_gaps(closed))
    return found | {"hoverongaps": False}


def _rectangles(closed: np.ndarray) -> np.ndarray:
    """Outline closed cells as few rectangles, `[corner, (x, y)]`, each ended by a row of NaN.

    Rows with the same closed cells share their rectangles: a padded column is one, a causal triangle one a
    row.
    """
    corners: list[tuple[float, float]] = []
    first = 0
    for row in range(1, len(closed) + 1):
        if row < len(closed) and np.array_equal(closed[row], closed[first]):
            continue
        edges = np.flatnonzero(np.diff(closed[first], prepend=False, append=False)) - 0.5  # of runs of True
        for left, right in edges.reshape(-1, 2).tolist():
            top, bottom = first - 0.5, row - 0.5
            corners += [(left, top), (right, top), (right, bottom), (left, bottom), (left, top), (np.nan, np.nan)]
        first = row
    return np.array(corners, dtype=np.float32)


def _frames(shape: tuple[int, ...], row: int | None, cell: tuple[int, int] | None) -> list[Spec]:
    rows, columns = shape
    frames = []
    if row is not None and 0 <= row < rows:
        width = 2 if rows <= _MOST_GAPPED else 1
        frames.append(frame((-0.5, columns - 0.5), (row - 0.5, row + 0.5), width=width))
    if cell is not None and 0 <= cell[0] < rows and 0 <= cell[1] < columns:
        frames.append(frame((cell[1] - 0.5, cell[1] + 0.5), (cell[0] - 0.5, cell[0] + 0.5), width=3))
    return frames


def _odd_sums(drawn: np.ndarray, allowed: np.ndarray) -> list[str]:
    """Name the rows that do not share out 1, which happens after a what-if and must not pass unseen."""
    sums = np.nansum(drawn, axis=1)
    odd = np.flatnonzero((np.abs(sums - 1) > _ROUNDING) & allowed.any(axis=1))
    if not odd.size:
        return []
    named = ", ".join(f"{row + 1} ({sums[row]:.2f})" for row in odd[:_MOST_NAMED])
    more = odd.size - _MOST_NAMED
    if more <= 0:
        return [say("rows that do not sum to 1: {rows}", rows=named)]
    return [say("rows that do not sum to 1: {rows} and {more} more", rows=named, more=more)]


# ------------------------------------------------------------------------------------------------ the table

MOST_ROWS = 2**24
"""Of one table: 512 tokens of 6 layers with 8 heads are 12.6 million. More would take gigabytes to write."""


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


# ------------------------------------------------------------------------------------------------ the row of the step

# The mark is not part of the figure: a map of a long sentence would be sent again at every step. The figure says which
# row belongs to which step; `glassformer/components/plotly/step-display.js` draws the mark.

HOW_TO_READ_MARK = say("The row of the current step is marked.")

_POINTERS: list[Spec] = [
    {"type": "path", "xref": "paper", "xsizemode": "pixel", "xanchor": edge, "ysizemode": "pixel", "path": path,
     "fillcolor": MARK_COLOR, "line": {"width": 0}}
    for edge, path in ((0, "M0,0L-7,-4L-7,4Z"), (1, "M0,0L7,-4L7,4Z"))
]  # fmt: skip


def follow_steps(
    spec: Spec,
    rows: Sequence[int | None],
    *,
    n_rows: int,
    n_columns: int,
    starts: Sequence[int] = (0,),
    most_framed: int = 128,
) -> None:
    """Have the browser mark the row of the current step: with a frame, or with pointers if rows are thin.

    `rows` has for each step its row of a map from `heatmap_spec` or `grid_spec`, or None. `starts` are the first rows
    of maps below each other; with more than `most_framed` rows in all, a frame would hide its row. Raises ValueError
    if a row is not in the map.
    """
    wrong = [row for row in rows if row is not None and not 0 <= row < n_rows]
    if wrong:
        raise ValueError(f"Row {wrong[0]} of a map with {n_rows}.")
    total, layout, marks = n_rows * len(starts), spec["layout"], _POINTERS
    if total <= most_framed:
        line = {"color": MARK_COLOR, "width": 2 if total <= 64 else 1}  # a bold frame would hide a low row
        marks = [{"type": "rect", "x0": -0.5, "x1": n_columns - 0.5, "line": line}]
    else:
        layout["yaxis"]["ticklabelstandoff"] = 8  # pixels, the room of a pointer
    layout.setdefault("meta", {})["follow"] = {"rows": list(rows), "starts": list(starts), "marks": marks}


# ------------------------------------------------------------------------------------------------ prompt, output

HOW_TO_READ_PROMPT = say(
    "The dotted lines separate the prompt from the output. Rows above the horizontal line predict the prompt, rows "
    "below it the output; columns left of the vertical line are the prompt."
)

_LINE: Spec = {"type": "line", "line": {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}}


def part_map(spec: Spec, *, row: int | None, column: int | None) -> None:
    """Draw a line above the first row of the output, and one before its first column, and name both sides.

    The map, of `heatmap_spec`, has closed cells in its upper right corner. The row is the first to predict an output
    piece, the column is the first output piece; None if none is drawn, or all are.
    """
    layout = spec["layout"]
    shapes, names = layout.setdefault("shapes", []), layout.setdefault("annotations", [])
    prompt, output = say("prompt", about="part of a map"), say("output", about="part of a map")
    name = {"showarrow": False, "font": {"size": 12}}
    if row is not None and row > 0:
        shapes.append({**_LINE, "xref": "x domain", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row - 0.5})
        beside = {**name, "xref": "x domain", "x": 1, "xanchor": "right", "xshift": -4, "yref": "y", "y": row - 0.5}
        names += [{**beside, "yanchor": "bottom", "text": prompt}, {**beside, "yanchor": "top", "text": output}]
    if column is not None and column > 0:
        shapes.append({**_LINE, "yref": "y domain", "y0": 0, "y1": 1, "x0": column - 0.5, "x1": column - 0.5})
        above = {**name, "yref": "y domain", "y": 1, "yanchor": "bottom", "xref": "x", "x": column - 0.5}
        names.append({**above, "xanchor": "right", "xshift": -4, "text": prompt})
        names.append({**above, "xanchor": "left", "xshift": 4, "text": output})
        layout["margin"]["t"] += 18  # pixels for the names


def part_tiles(layout: Spec, drawn: tuple[int, ...], *, row: float, column: float) -> None:
    """Draw the same lines through all tiles of a grid, from edge to edge.

    `drawn` is its size, [layer, head, row, column] in blocks; so are `row` and `column`, of each tile.
    """
    n_layers, n_heads, n_rows, n_columns = drawn
    thin = {**_LINE, "line": {**_LINE["line"], "width": 1}}
    if 0 < row < n_rows:
        for layer in range(n_layers):
            at = layer * n_rows + row - 0.5
            layout["shapes"].append({**thin, "xref": "x domain", "x0": 0, "x1": 1, "y0": at, "y1": at})
    if 0 < column < n_columns:
        for head in range(n_heads):
            at = head * n_columns + column - 0.5
            layout["shapes"].append({**thin, "yref": "y domain", "y0": 0, "y1": 1, "x0": at, "x1": at})
