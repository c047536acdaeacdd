"""Attribution charts: the parts whose sum is a logit, and the credit of each piece.

The measures have different units, so each column has its own scale, from its largest number down to 0; numbers below
0 have the other colour. The caller names the measures.

In the map, rows are places of the decoder in the order of the computation; a cell without a part is empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    GREY,
    PLACES,
    along,
    at_ends,
    cells,
    finite,
    frame,
    in_cells,
    lying,
    lying_bars,
    note,
    table,
    table_of,
)
from glassformer.charts.hover import bold, hover, italic, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, capitalised, literal
from transformer.i18n import joined, say, through

HOW_TO_READ = say(
    "Each row is one token, each column a measure with its own colour scale: the stronger the colour, the closer "
    "the number is to the largest in its column. Purple supports the token that was written, green counts against "
    "it. In each column, a frame marks the largest number, regardless of sign."
)

PALE_FROM = 0.62
"""Share of the scale from which a dark cell needs pale text."""
_ROW = 26  # pixels
_MOST_WRITTEN = 64  # rows: of more, numbers would overlap


@dataclass(frozen=True)
class Column:
    """A measure."""

    name: str  # in a word or two, above the column
    values: np.ndarray  # of each piece; NaN where there is none
    digits: str  # how its numbers are written, such as "+.2f"
    absent: str = ""  # why there is no number, where there is none
    least: float = 0.0  # the scale does not end below this; where no number is as large, nothing stands out
    meaning: str = ""  # what it is and its source, shown where its name is pointed at


def piece_credit_spec(pieces: Sequence[str], columns: Sequence[Column], *, title: str, piece_axis: str) -> Spec:
    """Draw the measures of each piece, the first piece on top; a click's index is (row, column)."""
    if any(np.shape(column.values) != (len(pieces),) for column in columns):
        raise ValueError(f"{len(pieces)} tokens: give one number for each in every column.")
    layout = base_layout(title, "", piece_axis)
    names = [_named(column.name) if column.meaning else literal(column.name) for column in columns]
    layout["xaxis"] |= {"range": [-0.5, len(columns) - 0.5], "tickvals": list(range(len(columns))), "side": "top"}
    layout["xaxis"] |= {"ticktext": names, "showgrid": False, "fixedrange": True}
    layout["xaxis"] |= {"ticks": "", "autotickangles": [0, -45, -90], "tickfont": {"size": 12}}
    along(layout, pieces, axis="yaxis")
    layout["margin"] |= {"t": 74, "r": 44}  # slanted names of columns
    layout["height"] = int(np.clip(120 + _ROW * len(pieces), 220, 1400))
    measures = [(capitalised(column.name), map(finite, column.values)) for column in columns]
    table_of(layout, (say("Number"), range(1, len(pieces) + 1)), (say("Token"), pieces), *measures)
    if not len(pieces) or not columns:
        return {"data": [], "layout": layout}
    values = np.stack([np.asarray(column.values, np.float64) for column in columns], axis=1)  # [piece, column]
    least = np.array([column.least for column in columns])
    shares = shares_of_columns(values, least)
    layout["shapes"] = _frames(values, least)
    layout["annotations"] = _meanings(columns)
    if len(pieces) <= _MOST_WRITTEN:
        layout["annotations"] += written(values, shares, [column.digits for column in columns])
    texts = [[_said(piece, column, place) for column in columns] for place, piece in enumerate(pieces)]
    absent = np.where(np.isfinite(values), np.nan, 0.0).astype(np.float32)
    grey = {"type": "heatmap", "z": absent, "colorscale": GREY, "xgap": 2, "ygap": 1, "showscale": False, **PLACES}
    data = [] if np.isfinite(values).all() else [grey | {"hoverinfo": "skip"}]
    return {"data": [*data, signed_cells(shares, texts)], "layout": layout}


@through
def _named(name: str) -> str:
    """A heading that says more when it is pointed at."""
    return f"{literal(name)} ⓘ"


def _meanings(columns: Sequence[Column]) -> list[Spec]:
    """What lies over a heading, unseen, and is pointed at."""
    unseen = {"yref": "paper", "yanchor": "bottom", "yshift": 2, "font": {"size": 12, "color": "rgba(0,0,0,0)"}}
    return [
        note(place, 1, _named(column.name)) | unseen | {"hovertext": literal(column.meaning)}
        for place, column in enumerate(columns)
        if column.meaning
    ]


def shares_of_columns(values: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Each number [row, column] as a share of its column's largest absolute number: -1 to 1.

    That largest number counts as at least `least` [column].
    """
    most = np.maximum(np.abs(np.nan_to_num(values)).max(axis=0, initial=0), least)
    return np.asarray(values / np.where(most == 0, 1.0, most))


def signed_cells(shares: np.ndarray, texts: Sequence[Sequence[str]]) -> Spec:
    """The trace of a map of shares from -1 to 1; each cell has its own text on hover."""
    z = np.asarray(shares, np.float32)
    found = cells(z, (-1, 1), theme.SIGNED_SCALE, hover("%{hovertext}"), gaps=(2, 1), named=False)
    return found | {"hovertext": [list(row) for row in texts], "hoverongaps": False}


def written(values: np.ndarray, shares: np.ndarray, digits: Sequence[str]) -> list[Spec]:
    """The numbers of a map in its cells, pale on dark cells; one format per column."""
    notes = in_cells(values, shares, lambda value, column: literal(number(value, digits[column])), pale_from=PALE_FROM)
    return [one | {"font": one["font"] | {"size": 11}} for one in notes]


def number(value: float, digits: str) -> str:
    """A number in a narrow cell; mere rounding reads as 0, without a sign."""
    text = format(value, digits)
    some = any(digit in "123456789" for digit in text)
    return text.replace("-", "−") if some else format(0.0, digits.replace("+", ""))


def _frames(values: np.ndarray, least: np.ndarray) -> list[Spec]:
    """A frame around the largest number of each column."""
    found = []
    for column, numbers in enumerate(np.abs(np.nan_to_num(values)).T):
        if numbers.max(initial=0) > 0 and numbers.max(initial=0) >= least[column]:
            row = int(numbers.argmax())
            found.append(frame((column - 0.48, column + 0.48), (row - 0.47, row + 0.47)))
    return found


def _said(piece: str, column: Column, place: int) -> str:
    value = float(column.values[place])
    named = say("{n}: {piece}", n=place + 1, piece=bold(piece))
    return on_lines(
        named, with_number(literal(column.name), f"{value:.4g}") if np.isfinite(value) else italic(column.absent)
    )


HOW_TO_READ_MAP = say(
    "Each cell is what one part of the decoder adds directly to the logit, not counting its influence on later "
    "parts. Purple raises the logit, green lowers it. Click a head to choose it."
)
HOW_TO_READ_BARS = say(
    "Each bar is what one part adds to the logit; the largest, regardless of sign, is on top. The last row is the "
    "sum of all other parts. Click a head to choose it."
)
LOGIT = say("Amount added to the logit")
_COLUMNS = (say("Part", about="of a sum"), LOGIT)
_PARTS_ROW = 34  # pixels
_MOST_PRECISE = 6  # columns whose numbers have room for two digits on a phone
_MOST_PARTS_WRITTEN = 14  # columns whose numbers do not touch
_LESS = str(theme.SIGNED_SCALE[2][1])


@dataclass(frozen=True)
class Bar:
    """One part, or several together."""

    name: str  # what it is
    short: str  # the same on the axis; a head as "layer.head"
    value: float  # what it adds
    place: int | None = None  # what a click on it gives; None: it cannot be clicked
    chosen: bool = False  # whether it is the selected part


def contribution_map_spec(
    values: np.ndarray,
    *,
    rows: Sequence[str],
    columns: Sequence[tuple[str, str]],
    names: Sequence[Sequence[str]],
    title: str,
    chosen: tuple[int, int] | None = None,
) -> Spec:
    """Draw what each part adds [row, column], the first row on top; NaN where there is no part.

    `columns` are the headings, on two lines; `names` has the name of each part [row][column]; `chosen`, row and
    column, is framed. A click's index is (row, column).
    """
    parts = np.asarray(values, np.float64)
    if parts.shape != (len(rows), len(columns)) or [len(columns)] * len(rows) != [*map(len, names)]:
        raise ValueError(f"{parts.shape} numbers for {len(rows)} rows and {len(columns)} columns.")
    layout = base_layout(title, "", "")
    layout["xaxis"] |= {"range": [-0.5, len(columns) - 0.5], "side": "top", "fixedrange": True, "showgrid": False}
    layout["xaxis"] |= {"tickvals": list(range(len(columns))), "tickangle": 0, "ticks": "", "tickfont": {"size": 12}}
    layout["xaxis"]["ticktext"] = [joined("<br>", map(literal, column)) for column in columns]
    along(layout, rows, axis="yaxis", revised=False)
    layout["yaxis"] |= {"fixedrange": True}
    layout["margin"] |= {"t": 80}
    layout["height"] = int(np.clip(120 + _PARTS_ROW * len(rows), 220, 900))
    cells = [(row, column) for row, column in np.ndindex(parts.shape) if np.isfinite(parts[row, column])]
    table(layout, _COLUMNS, [[names[row][column], float(parts[row, column])] for row, column in cells])
    if not cells:
        return {"data": [], "layout": layout}
    most = float(np.abs(np.nan_to_num(parts)).max()) or 1.0
    texts = [
        [on_lines(bold(name), with_number(literal(LOGIT), f"{part:+.4g}")) for name, part in zip(*row, strict=True)]
        for row in zip(names, parts, strict=True)
    ]
    if len(columns) <= _MOST_PARTS_WRITTEN:
        digits = "+.2f" if len(columns) <= _MOST_PRECISE else "+.1f"
        layout["annotations"] = written(parts, parts / most, [digits] * len(columns))
    if chosen is not None:
        row, column = chosen
        layout["shapes"] = [frame((column - 0.48, column + 0.48), (row - 0.47, row + 0.47), width=2.5)]
    return {"data": [signed_cells(parts / most, texts)], "layout": layout}


def contribution_bars_spec(bars: Sequence[Bar], *, title: str, every: Sequence[Bar] = ()) -> Spec:
    """Draw parts as horizontal bars, the first on top; the last sums up all others. A click returns its `place`.

    `every` has all parts, for the chart's table; if empty, the table has those that are drawn.
    """
    layout = lying(title, LOGIT, "", [bar.short for bar in bars])
    values = np.array([bar.value for bar in bars], np.float64)
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    room = 0.3 * ((high - low) or 1.0)
    layout["xaxis"] |= {"range": [low - room, high + room], "nticks": 6, "fixedrange": True}
    layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR}
    numbers = values.tolist()
    layout["annotations"] = at_ends(numbers, (literal(number(value, "+.3f")) for value in numbers), signed=True)
    table(layout, _COLUMNS, [[bar.name, float(bar.value)] for bar in every or bars])
    shown = lying_bars(values, [theme.NEUTRAL_COLOR if value >= 0 else _LESS for value in numbers])
    shown["customdata"] = [-1 if bar.place is None else bar.place for bar in bars]
    shown["marker"]["line"] = {"color": theme.MARK_COLOR, "width": [2.5 if bar.chosen else 0.0 for bar in bars]}
    shown["hovertext"] = [on_lines(bold(bar.name), with_number(literal(LOGIT), f"{bar.value:+.4g}")) for bar in bars]
    return {"data": [shown] if bars else [], "layout": layout}
