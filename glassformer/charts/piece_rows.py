"""Rows of tokens in cells: wrapping, inputs and labels of teacher forcing, two texts compared, speculative drafts.

Long rows are wrapped into bands like the lines of a text. Each place reads what the place before it had to predict, so
a line leads from every label to where it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import PALE_FROM, along, cells, frame, layer, legend, listed, note, table
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, SCALES, Colour, Spec, base_layout, in_cell, literal
from transformer.i18n import joined, say
from transformer.i18n.sentence import chance

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
    colours = {cell.colour: None for _, there in rows for cell in there if cell is not None}
    data = [_trace(rows, colour, n_bands) for colour in colours]
    for row, (_, there) in enumerate(rows):
        for place, cell in enumerate(there):
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
    for row, (_, there) in enumerate(rows):
        for place, cell in enumerate(there):
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
    colour = SCALES[cell.colour][0][1] if cell.shade > PALE_FROM else MARK_COLOR
    text = "<br>".join(map(literal, in_cell(cell.piece, 2, most=_LINE)))
    font = {"font": {"size": 11, "color": colour}, "captureevents": False}
    layout["annotations"].append(note(column, begins + 0.5, text) | font)
    if cell.framed:
        layout["shapes"].append(frame((column - 0.48, column + 0.48), (begins, begins + 1), width=2.5))


# ------------------------------------------------------------------------------------------------ two texts

HOW_TO_READ = say(
    "The two texts, position by position. Blue: identical up to the first difference, which is framed. Orange: "
    "what follows in each text; tokens in the same column need not correspond. Purple: the ending, identical in "
    "both texts."
)
AXIS = say("Position (wrapped into lines)")
_PARTS: dict[str, tuple[Colour, float, str]] = {  # with their shades, and as the table calls them
    "before": ("source", 0.25, say("same")),
    "parts": ("target", 0.5, say("first difference")),
    "after": ("target", 0.2, say("after the first difference")),
    "end": ("neutral", 0.3, say("same ending")),
}


def two_texts_spec(
    names: tuple[str, str],
    texts: tuple[Sequence[str], Sequence[str]],
    probabilities: tuple[Sequence[float], Sequence[float]],
    *,
    parts_at: int | None,
    tail: int,
    title: str,
) -> Spec:
    """Draw two texts, with the probability, 0 to 1, of each piece given the pieces before it in its own text.

    From place `parts_at` on, counted from 0, they differ, or only one continues; None if they are equal. After that
    place both end with the same `tail` pieces.
    """
    if [*map(len, texts)] != [*map(len, probabilities)]:
        raise ValueError("Give one probability for each token.")
    drawn = window(max(map(len, texts)), parts_at)
    rows = [
        (name, [_cell(name, text, each, i, parts_at, tail) if i < len(text) else None for i in drawn])
        for name, text, each in zip(names, texts, probabilities, strict=True)
    ]
    figure = bands(rows, first=drawn.start, title=title, axis=AXIS)
    columns = [say("text"), say("place"), say("token"), say("probability"), say("part")]
    cells = [
        [name, i + 1, piece, float(p), _PARTS[_part(i, len(text), parts_at, tail)][2]]
        for name, text, each in zip(names, texts, probabilities, strict=True)
        for i, (piece, p) in enumerate(zip(text, each, strict=True))
    ]
    figure["layout"]["meta"] = {"first": drawn.start}
    table(figure["layout"], columns, cells)
    return figure


def _part(place: int, length: int, parts_at: int | None, tail: int) -> str:
    if parts_at is None or place < parts_at:
        return "before"
    if place >= length - tail:
        return "end"
    return "parts" if place == parts_at else "after"


def _cell(
    name: str, text: Sequence[str], probabilities: Sequence[float], place: int, parts_at: int | None, tail: int
) -> Cell:
    colour, shade, _ = _PARTS[_part(place, len(text), parts_at, tail)]
    which = say("{text}, token {n}: {piece}", text=name, n=place + 1, piece=bold(text[place]))
    said = on_lines(which, say("probability {p}", p=literal(chance(float(probabilities[place])))))
    return Cell(text[place], said, colour, shade, framed=place == parts_at)


HOW_TO_READ_SHIFT = say(
    "In each column, the decoder reads the upper token and all tokens before it, and has to predict the lower "
    "token. The stronger the lower token's colour, the larger its loss; the scale ends at the loss of pure "
    "guessing. The lower token of one column is the upper token of the next. Click a column to shade the tokens "
    "that it sees in the upper row."
)
READS, PREDICTS = say("reads"), say("has to predict")


def shift_spec(
    reads: Sequence[str],
    labels: Sequence[str],
    losses: Sequence[float],
    *,
    guessing: float,
    chosen: int | None,
    title: str,
) -> Spec:
    """Draw the last piece that each place reads and the label that it has to predict, with its loss in nats.

    The scale ends at `guessing`, the loss of guessing among all pieces. What the `chosen` place reads is shaded. A
    long text shows only the bands around that place: `layout.meta.first` is the first place drawn.
    """
    if {len(reads), len(losses)} != {len(labels)}:
        raise ValueError(f"{len(labels)} labels need as many tokens that are read, and losses.")
    drawn = window(len(labels), chosen)
    above = [_input(reads[i], i, chosen) for i in drawn]
    below = [_label(labels[i], i, float(losses[i]), guessing, i == chosen) for i in drawn]
    figure = bands([(READS, above), (PREDICTS, below)], first=drawn.start, title=title, axis=AXIS)
    layout = figure["layout"]
    layout["shapes"] = [*_arrows(len(drawn)), *layout["shapes"]]
    layout["meta"] = {"first": drawn.start}
    rows = zip(range(1, len(labels) + 1), reads, labels, map(float, losses), strict=True)
    table(layout, [say("place"), READS, PREDICTS, say("loss (nats)")], rows)
    return figure


def _input(piece: str, place: int, chosen: int | None) -> Cell:
    seen = chosen is None or place <= chosen
    said = [say("token {n} reads {piece}", n=place + 1, piece=bold(piece))]
    if chosen is not None and seen:
        said.append(say("visible from token {n}, which sees itself and everything before it", n=chosen + 1))
    elif chosen is not None:
        said.append(say("not visible from token {n}, because this token comes later", n=chosen + 1))
    return Cell(piece, on_lines(*said), "source", 0.3 if seen else 0.0, framed=place == chosen)


def _label(piece: str, place: int, loss: float, guessing: float, framed: bool) -> Cell:
    said = on_lines(
        say("token {n} has to predict {piece}", n=place + 1, piece=bold(piece)),
        with_number(say("loss"), literal(f"{loss:.3f}")),
        say("probability {p}", p=literal(chance(float(np.exp(-loss))))),
    )
    shade = min(loss / guessing, 1.0) if guessing and np.isfinite(loss) else 1.0
    return Cell(piece, said, "target", shade, framed)


def _arrows(count: int) -> list[Spec]:
    """From each label to where it is read, in the next column; the last of a band is read in the next band."""
    line = {"color": GUIDE_COLOR, "width": 1.5}
    found = []
    for place in range(count - 1):
        band, column = divmod(place, COLUMNS)
        if column < COLUMNS - 1:
            ends = {"x0": column + 0.2, "y0": top(band, 1, 2), "x1": column + 0.8, "y1": top(band, 0, 2) + 1}
            found.append({"type": "line", "layer": "below", "line": line, **ends})
    return found


# ------------------------------------------------------------------------------------------------ fates

Fate = Literal["good", "replaced", "added", "unread"]
COLOURS: dict[Fate, str] = {
    "good": theme.SOURCE_PALE,
    "replaced": theme.TARGET_PALE,
    "added": theme.SCALES["neutral"][1][1],
    "unread": theme.MASK_COLOR,
}
MARKS: dict[Fate, str] = {"good": "✓", "replaced": "✗", "added": "+", "unread": "·"}
PLACE = say("Place in the output")
MOST_COLUMNS = 40
"""Columns, and rows, that are drawn at once."""
_ROWS_FRAME = 140  # pixels of title, names of the marks and axis
_TALL_ROW, _LOW_ROW, _MOST_TALL = 46, 28, 8  # pixels of a row of two lines, and of one; most rows of two
_COLUMN, _LEAST = 52, 470  # pixels of a column and, for the legend, of all; with less it scrolls
_ROWS_LINE, _SHORT = 8, 5  # letters of a piece alone on its line, and next to a mark


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
    layout["height"] = _ROWS_FRAME + (_TALL_ROW if tall else _LOW_ROW) * len(rows)
    layout["meta"] |= {"least_width": max(_LEAST, 90 + _COLUMN * width), "least_height": layout["height"]}
    there = [(y, x, cell) for y, (_, row) in enumerate(rows) for x, cell in enumerate(row) if cell is not None]
    layout["annotations"] = [_written_over(cell, x, y, tall=tall) for y, x, cell in there]
    if marked is not None:
        layout["shapes"] = [frame((marked - 0.5, marked + 0.5), (-0.5, len(rows) - 0.5), width=2)]
    table(layout, columns, [cell.values for *_, cell in there])
    fates: list[Fate] = list(names)
    z = np.full((len(rows), width), np.nan, np.float32)
    texts = [[""] * width for _ in rows]
    for y, x, cell in there:
        z[y, x], texts[y][x] = fates.index(cell.fate), cell.said
    n = len(fates)
    scale = [[end / n, COLOURS[fate]] for place, fate in enumerate(fates) for end in (place, place + 1)]
    map_ = cells(z, (-0.5, n - 0.5), scale, hover("%{hovertext}"), gaps=(3, 3), named=False)
    data = [map_ | {"hovertext": texts, "hoverongaps": False}]
    for fate in fates:  # the legend
        marker = {
            "symbol": "square",
            "size": 13,
            "color": COLOURS[fate],
            "line": {"width": 1, "color": theme.MASK_LINE},
        }
        data.append(layer("markers", [None], [None], {"marker": marker}, name=joined(" ", [MARKS[fate], names[fate]])))
    return {"data": data, "layout": layout}


def _written_over(cell: PieceCell, column: int, row: int, *, tall: bool) -> Spec:
    """The piece with its mark; one that was replaced is struck out, over what was put in its place."""
    most = _ROWS_LINE if tall and not cell.instead else _SHORT
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
