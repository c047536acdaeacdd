"""Rows of pieces under an output, one after another: what became of each, by colour, by mark and on hover.

Drafts and their checks, a round per row; outputs of a changed model, a change per row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import along, cells, frame, layer, legend, listed, note, table
from glassformer.charts.hover import hover
from glassformer.charts.theme import Spec, base_layout, in_cell, literal
from transformer.i18n import joined, say

Fate = Literal["good", "replaced", "added", "unread"]
COLOURS: dict[Fate, str] = {
    "good": theme.SOURCE_PALE,
    "replaced": theme.TARGET_PALE,
    "added": theme.SCALES["neutral"][1][1],
    "unread": theme.MASK_COLOR,
}
MARKS: dict[Fate, str] = {"good": "✓", "replaced": "✗", "added": "+", "unread": "·"}
PLACE = say("Place in the output")
MOST = 40
"""Columns, and rows, that are drawn at once."""
_FRAME = 140  # pixels of title, names of the marks and axis
_ROW, _LOW_ROW, _MOST_TALL = 46, 28, 8  # pixels of a row of two lines, and of one; most rows of two
_COLUMN, _LEAST = 52, 470  # pixels of a column and, for the legend, of all; with less it scrolls
_LINE, _SHORT = 8, 5  # letters of a piece alone on its line, and next to a mark


@dataclass(frozen=True)
class PieceCell:
    """A cell."""

    fate: Fate
    piece: str  # its text
    said: str  # on hover; already escaped
    instead: str = ""  # what was put in place of the piece
    values: Sequence[Any] = ()  # its row of the saved table


def piece_rows_spec(
    rows: Sequence[tuple[str, Sequence[PieceCell | None]]],
    *,
    names: Mapping[Fate, str],
    columns: Sequence[str],
    title: str,
    first: int = 0,
    marked: int | None = None,
) -> Spec:
    """Draw rows of cells below each other, each with its name and a cell, or None, for each place of the output.

    `names` says in the legend what each fate means, and leaves out those that do not occur; `columns` are the
    headings of the saved table, which has the `values` of all cells. `first` is the place of the first column, and
    the column `marked` has a frame. A click is read by `cell_of`.
    """
    width = len(rows[0][1])
    if any(len(row) != width for _, row in rows):
        raise ValueError(f"The first row has {width} cells; give each as many.")
    layout = base_layout(title, PLACE, "")
    along(layout, [str(first + place + 1) for place in range(width)])
    layout["xaxis"] |= {"fixedrange": True, "tickangle": 0}
    listed(layout, [name for name, _ in rows])
    layout["yaxis"] |= {"title": {"text": "", "standoff": 0}}
    legend(layout, 84)
    tall = len(rows) <= _MOST_TALL
    layout["height"] = _FRAME + (_ROW if tall else _LOW_ROW) * len(rows)
    layout["meta"] |= {"least_width": max(_LEAST, 90 + _COLUMN * width), "least_height": layout["height"]}
    there = [(y, x, cell) for y, (_, row) in enumerate(rows) for x, cell in enumerate(row) if cell is not None]
    layout["annotations"] = [_written(cell, x, y, tall=tall) for y, x, cell in there]
    if marked is not None:
        layout["shapes"] = [frame((marked - 0.5, marked + 0.5), (-0.5, len(rows) - 0.5), width=2)]
    table(layout, columns, [cell.values for *_, cell in there])
    fates: list[Fate] = list(names)
    z = np.full((len(rows), width), np.nan, np.float32)
    texts = [[""] * width for _ in rows]
    for y, x, cell in there:
        z[y, x], texts[y][x] = fates.index(cell.fate), cell.said
    map_ = cells(z, (-0.5, len(fates) - 0.5), _steps(fates), hover("%{hovertext}"), gaps=(3, 3), named=False)
    keys = [_in_legend(fate, names[fate]) for fate in fates]
    return {"data": [map_ | {"hovertext": texts, "hoverongaps": False}, *keys], "layout": layout}


def _steps(fates: Sequence[Fate]) -> list[list[Any]]:
    """A scale with one colour for each."""
    n = len(fates)
    return [[end / n, COLOURS[fate]] for place, fate in enumerate(fates) for end in (place, place + 1)]


def _in_legend(fate: Fate, name: str) -> Spec:
    marker = {"symbol": "square", "size": 13, "color": COLOURS[fate], "line": {"width": 1, "color": theme.MASK_LINE}}
    return layer("markers", [None], [None], {"marker": marker}, name=joined(" ", [MARKS[fate], name]))


def _written(cell: PieceCell, column: int, row: int, *, tall: bool) -> Spec:
    """The piece with its mark; one that was replaced is struck out, over what was put in its place."""
    most = _LINE if tall and not cell.instead else _SHORT
    piece, instead = (literal("".join(in_cell(one, 1, most=most))) for one in (cell.piece, cell.instead))
    mark = MARKS[cell.fate]
    if not instead:
        lines = [piece, mark] if tall else [f"{mark} {piece}"]
    elif tall:
        lines = [f"<s>{piece}</s> {mark}", f"<b>{instead}</b>"]
    else:
        lines = [f"{mark} <b>{instead}</b>"]
    font = {"size": 11, "color": theme.MARK_COLOR}
    return note(column, row, "<br>".join(lines)) | {"font": font, "captureevents": False}
