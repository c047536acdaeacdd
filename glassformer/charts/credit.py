"""The credit of each piece by several measures: one row per piece, one column per measure.

The measures have different units, so each column has its own scale, from its largest number down to 0; numbers below
0 have the other colour. The caller names the measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import GREY, PLACES, along, cells, finite, frame, in_cells, note, table_of
from glassformer.charts.hover import bold, hover, italic, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, capitalised, literal
from transformer.i18n import say, through

HOW_TO_READ = say(
    "Each row is one piece, each column a measure with its own colour scale: the stronger the colour, the closer "
    "the number is to the largest in its column. Purple supports the piece that was written, green counts against "
    "it. In each column, a frame marks the largest number, regardless of sign."
)

PALE_FROM = 0.62
"""Share of the scale from which a dark cell needs pale text."""
_ROW = 26  # pixels
_MOST_WRITTEN = 64  # rows: of more, numbers would stand in each other's way


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
        raise ValueError(f"{len(pieces)} pieces: give one number for each in every column.")
    layout = base_layout(title, "", piece_axis)
    names = [_named(column.name) if column.meaning else literal(column.name) for column in columns]
    layout["xaxis"] |= {"range": [-0.5, len(columns) - 0.5], "tickvals": list(range(len(columns))), "side": "top"}
    layout["xaxis"] |= {"ticktext": names, "showgrid": False, "fixedrange": True}
    layout["xaxis"] |= {"ticks": "", "autotickangles": [0, -45, -90], "tickfont": {"size": 12}}
    along(layout, pieces, axis="yaxis")
    layout["margin"] |= {"t": 74, "r": 44}  # slanted names of columns
    layout["height"] = int(np.clip(120 + _ROW * len(pieces), 220, 1400))
    measures = [(capitalised(column.name), map(finite, column.values)) for column in columns]
    table_of(layout, (say("Number"), range(1, len(pieces) + 1)), (say("Piece"), pieces), *measures)
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
