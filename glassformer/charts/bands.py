"""Rows of pieces in cells, wrapped into bands like the lines of a text, so long rows fit.

Shared by `glassformer.charts.two_texts` and `glassformer.charts.two_texts`: a band has a few rows, with a cell for each
piece of the band.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts.grammar import PALE_FROM, frame, note
from glassformer.charts.hover import hover
from glassformer.charts.lens import in_cell
from glassformer.charts.theme import MARK_COLOR, SCALES, Colour, Spec, base_layout, literal

COLUMNS, FEWEST = 6, 5
MOST = 6 * COLUMNS
"""Pieces that are drawn at once; of more, those around the one that is looked at."""
_LINE = 7  # letters of a piece in a cell: on a phone the cells of a band are 46 pixels wide
_BAND, _FRAME = 96, 84  # pixels of a band of two rows, and of the title
_BETWEEN_ROWS, _BETWEEN_BANDS = 0.5, 0.7  # in heights of a cell


@dataclass(frozen=True)
class Cell:
    """A cell."""

    piece: str  # its text
    said: str  # on hover; already escaped
    colour: Colour  # the scale of its ground
    shade: float  # its place on that scale, 0 to 1
    framed: bool = False  # whether it is marked


def window(count: int, place: int | None) -> range:
    """The places that are drawn: all, or if there are many, those around one, in whole bands."""
    if count <= MOST:
        return range(count)
    band = (place or 0) // COLUMNS
    first = min(max(band - MOST // COLUMNS // 2, 0), -(-count // COLUMNS) - MOST // COLUMNS) * COLUMNS
    return range(first, min(first + MOST, count))


def bands(rows: Sequence[tuple[str, Sequence[Cell | None]]], *, first: int, title: str, axis: str) -> Spec:
    """Draw rows of cells, each with its name, None where there is no cell; `first` is the place of the first column.

    A click on a cell is read by `place_in_bands`.
    """
    width = max((len(cells) for _, cells in rows), default=0)
    n_bands, n_rows = max(1, -(-width // COLUMNS)), len(rows)
    layout = base_layout(title, axis, "")
    across = min(max(width, FEWEST), COLUMNS)  # in view
    bare = {"showgrid": False, "fixedrange": True, "ticks": "", "showline": False}
    layout["xaxis"] |= {**bare, "range": [-0.5, across - 0.5], "showticklabels": False}
    layout["yaxis"] |= {"range": [tops(n_bands, n_rows)[-1] + 0.15, -0.1]}
    layout["yaxis"] |= {**bare, "tickmode": "array", "title": {"text": "", "standoff": 0}}
    middles = [(top(band, row, n_rows) + 0.5, name) for band in range(n_bands) for row, (name, _) in enumerate(rows)]
    layout["yaxis"] |= {"tickvals": [at for at, _ in middles], "ticktext": [name for _, name in middles]}
    layout["margin"] |= {"l": 0, "r": 2}
    layout["height"] = _FRAME + _BAND * n_bands * n_rows // 2
    layout |= {"annotations": [], "shapes": []}
    colours = {cell.colour: None for _, cells in rows for cell in cells if cell is not None}
    data = [_trace(rows, colour, n_bands) for colour in colours]
    for row, (_, cells) in enumerate(rows):
        for place, cell in enumerate(cells):
            if cell is not None:
                _write(layout, cell, place % COLUMNS, top(place // COLUMNS, row, n_rows))
    for start in range(n_bands):  # the place of the first piece of each band, from 1
        number = note(-0.48, top(start, 0, n_rows), str(first + start * COLUMNS + 1))
        layout["annotations"].append(number | {"xanchor": "left", "yanchor": "bottom", "font": {"size": 10}})
    return {"data": data, "layout": layout}


def top(band: int, row: int, n_rows: int) -> float:
    """Where a row of a band begins, from the top, in cell heights."""
    return band * (n_rows + (n_rows - 1) * _BETWEEN_ROWS + _BETWEEN_BANDS) + row * (1 + _BETWEEN_ROWS) + 0.3


def tops(n_bands: int, n_rows: int) -> list[float]:
    """The edges of all rows: where each begins and where it ends."""
    found = [(top(band, row, n_rows), top(band, row, n_rows) + 1) for band in range(n_bands) for row in range(n_rows)]
    return [edge for pair in found for edge in pair]


def place_in_bands(index: Sequence[int], *, n_rows: int, first: int) -> tuple[int, int] | None:
    """Row and place, from 0, of a clicked cell; None if it is not a cell.

    `index` is the heat map's row, gaps between rows included, and its column; `first` is as in `bands`.
    """
    if len(index) != 2 or index[0] % 2:
        return None
    band, row = divmod(index[0] // 2, n_rows)
    return row, first + band * COLUMNS + index[1]


def _trace(rows: Sequence[tuple[str, Sequence[Cell | None]]], colour: Colour, n_bands: int) -> Spec:
    """The cells of one scale; every second row of the map is a gap."""
    n_rows = len(rows)
    shades = np.full((2 * n_bands * n_rows - 1, COLUMNS), np.nan, np.float32)
    said: list[list[str]] = [[""] * COLUMNS for _ in shades]
    for row, (_, cells) in enumerate(rows):
        for place, cell in enumerate(cells):
            if cell is not None and cell.colour == colour:
                band, column = divmod(place, COLUMNS)
                shades[2 * (band * n_rows + row), column] = cell.shade
                said[2 * (band * n_rows + row)][column] = cell.said
    return {
        "type": "heatmap",
        "z": shades,
        "zmin": 0,
        "zmax": 1,
        "x": np.arange(COLUMNS + 1) - 0.5,
        "y": np.array(tops(n_bands, n_rows)),
        "colorscale": SCALES[colour],
        "xgap": 3,
        "hovertext": said,
        "hovertemplate": hover("%{hovertext}"),
        "hoverongaps": False,
        "showscale": False,
    }


def _write(layout: Spec, cell: Cell, column: int, begins: float) -> None:
    """The piece into its cell, and a frame around it if it is marked."""
    colour = SCALES[cell.colour][0][1] if cell.shade > PALE_FROM else MARK_COLOR
    text = "<br>".join(map(literal, in_cell(cell.piece, 2, most=_LINE)))
    font = {"font": {"size": 11, "color": colour}, "captureevents": False}
    layout["annotations"].append(note(column, begins + 0.5, text) | font)
    if cell.framed:
        layout["shapes"].append(frame((column - 0.48, column + 0.48), (begins, begins + 1), width=2.5))
