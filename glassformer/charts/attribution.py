"""Attribution charts: credit per token as a table, parts of a logit as map and bars, one number per head as tiles.

The measures of credit have different units, so each column has its own scale, from its largest number down to 0;
numbers below 0 have the other colour. Tiles of heads have a block for each attention, on one scale for all. The caller
names what is measured, and its unit.

In the map of parts, rows are places of the decoder in the order of the computation; a cell without a part is empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    GREY,
    PLACES,
    along,
    at_ends,
    cells,
    drawable,
    finite,
    frame,
    in_cells,
    lying,
    lying_bars,
    note,
    one_side,
    table,
    table_of,
)
from glassformer.charts.grid import bracket, head_named
from glassformer.charts.hover import LOGIT, adds_to_logit, bold, hover, italic, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, capitalised, colour_bar, literal
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
    sizes = np.abs(np.nan_to_num(values))
    most = np.maximum(sizes.max(axis=0), least)
    shares = values / np.where(most == 0, 1.0, most)  # of the largest in the column, -1 to 1
    largest = [(int(row), column) for column, row in enumerate(sizes.argmax(axis=0))]
    layout["shapes"] = [_around(*cell) for cell in largest if sizes[cell] > 0 and sizes[cell] >= least[cell[1]]]
    # What lies over a heading, unseen, and is pointed at.
    unseen = {"yref": "paper", "yanchor": "bottom", "yshift": 2, "font": {"size": 12, "color": "rgba(0,0,0,0)"}}
    layout["annotations"] = [
        note(place, 1, name) | unseen | {"hovertext": literal(column.meaning)}
        for place, (name, column) in enumerate(zip(names, columns, strict=True))
        if column.meaning
    ]
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


def _around(row: int, column: int, width: float = 2) -> Spec:
    return frame((column - 0.48, column + 0.48), (row - 0.47, row + 0.47), width=width)


def _said(piece: str, column: Column, place: int) -> str:
    value = float(column.values[place])
    number = with_number(literal(column.name), f"{value:.4g}") if np.isfinite(value) else italic(column.absent)
    return on_lines(say("{n}: {piece}", n=place + 1, piece=bold(piece)), number)


HOW_TO_READ_MAP = say(
    "Each cell is what one part of the decoder adds directly to the logit, not counting its influence on later "
    "parts. Purple raises the logit, green lowers it. Click a head to choose it."
)
HOW_TO_READ_BARS = say(
    "Each bar is what one part adds to the logit; the largest, regardless of sign, is on top. The last row is the "
    "sum of all other parts. Click a head to choose it."
)
_COLUMNS = (say("Part", about="of a sum"), LOGIT)
_MOST_PRECISE, _MOST_PARTS_WRITTEN = 6, 14  # columns with room for two digits on a phone, and for any


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
    layout["height"] = int(np.clip(120 + 34 * len(rows), 220, 900))
    cells = [(row, column) for row, column in np.ndindex(parts.shape) if np.isfinite(parts[row, column])]
    table(layout, _COLUMNS, [[names[row][column], float(parts[row, column])] for row, column in cells])
    if not cells:
        return {"data": [], "layout": layout}
    most = one_side(parts)
    texts = [[adds_to_logit(*part) for part in zip(*row, strict=True)] for row in zip(names, parts, strict=True)]
    if len(columns) <= _MOST_PARTS_WRITTEN:
        digits = "+.2f" if len(columns) <= _MOST_PRECISE else "+.1f"
        layout["annotations"] = written(parts, parts / most, [digits] * len(columns))
    if chosen is not None:
        layout["shapes"] = [_around(*chosen, width=2.5)]
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
    less = str(theme.SIGNED_SCALE[2][1])
    shown = lying_bars(values, [theme.NEUTRAL_COLOR if value >= 0 else less for value in numbers])
    shown["customdata"] = [-1 if bar.place is None else bar.place for bar in bars]
    shown["marker"]["line"] = {"color": theme.MARK_COLOR, "width": [2.5 if bar.chosen else 0.0 for bar in bars]}
    shown["hovertext"] = [adds_to_logit(bar.name, bar.value) for bar in bars]
    return {"data": [shown] if bars else [], "layout": layout}


# ------------------------------------------------------------------------------------------------ heads

HOW_TO_READ_HEADS = say("Each cell is one head. The frame marks the chosen head.")
HOW_TO_READ_SIGNED = say("The colour scale is centred on 0.")

_MARGINS, _LEAST_CELL, _CELL = 84, 13, 30  # pixels
_MOST_HEADS_WRITTEN = 8  # heads beside each other whose numbers do not touch


@dataclass(frozen=True, eq=False)
class Block:
    """The heads of one attention."""

    name: str  # of the attention
    values: np.ndarray  # `[layer, head]`; NaN where there is no number
    says: np.ndarray | None = None  # what else hover says of each
    marked: np.ndarray | None = None  # which have an asterisk


def head_effects_spec(
    blocks: Sequence[Block],
    *,
    title: str,
    value_name: str,
    signed: bool,
    chosen: tuple[int, int, int] | None = None,
    group: int = 1,
) -> Spec:
    """Draw one number for each head, one block below the other, layer 1 on top of each.

    The rows of an attention with fewer heads are shorter. If numbers are `signed`, 0 is the middle of the scale,
    otherwise its end. `chosen` is block, layer and head; `group` heads share one key-value head, under one bracket. A
    click's index is a cell; `head_at` gives its head.
    """
    rows = _rows(blocks)
    n_heads = max((block.values.shape[1] for block in blocks), default=0)
    values, texts, marked = (
        _of_rows(rows, n_heads, *one) for one in (("values", np.nan), ("says", ""), ("marked", False))
    )
    layout = _layout(rows, n_heads, title, group)
    if not values.size:
        return {"data": [], "layout": layout}
    most = one_side(values)
    ends, scale = ((-most, most), theme.SIGNED_SCALE) if signed else ((0.0, most), theme.SCALES["neutral"])
    more = {"text": texts.tolist()} if texts.any() else {}
    number = with_number(literal(value_name), "%{z:.3~g}")
    says = hover("%{customdata[0]}, %{customdata[1]}", number, "%{text}" if more else "")
    drawn = drawable(values).astype(np.float32)
    data = cells(drawn, ends, scale, says, bar=colour_bar(literal(value_name)), gaps=(1, 1))
    data |= {"name": literal(value_name), "hoverongaps": False} | more
    if n_heads <= _MOST_HEADS_WRITTEN:
        there = values[np.isfinite(values)]
        # As many digits behind the point as tell the largest numbers apart; none for counts.
        digits = 0 if (there == np.round(there)).all() else int(np.clip(1 - np.floor(np.log10(most)), 2, 4))
        layout["annotations"] += in_cells(values, values / most, lambda value, _: _number(value, digits, signed=signed))
    layout["annotations"] += [
        star | {"x": star["x"] + 0.4, "y": star["y"] - 0.12, "font": star["font"] | {"size": 15}}
        for star in in_cells(np.where(marked, values, np.nan), values / most, lambda *_: "*")
    ]
    if chosen is not None:
        row, column = rows.index((blocks[chosen[0]], chosen[1])), chosen[2]
        layout["shapes"] = [frame((column - 0.5, column + 0.5), (row - 0.5, row + 0.5), width=3)]
    bracket(layout, n_heads, group)
    return {"data": [data], "layout": layout}


def head_at(blocks: Sequence[tuple[int, ...]], cell: tuple[int, int] | None) -> tuple[int, int, int] | None:
    """Block, layer and head, from 0, of a cell; None between blocks. `blocks` has each block's layers and heads."""
    row, column = cell or (-1, 0)
    for block, (n_layers, n_heads) in enumerate(blocks):
        if 0 <= row < n_layers and column < n_heads:
            return block, row, column
        row -= n_layers + 1
    return None


_Rows = Sequence[tuple[Block, int] | None]
"""The block and the layer of each row; None for the empty one between two blocks."""


def _rows(blocks: Sequence[Block]) -> _Rows:
    found: list[tuple[Block, int] | None] = []
    for block in blocks:
        found += [None] * bool(found) + [(block, layer) for layer in range(len(block.values))]
    return found


def _of_rows(rows: _Rows, n_heads: int, field: str, empty: Any) -> np.ndarray:
    found = np.full((len(rows), n_heads), empty, object if empty == "" else None)
    for place, row in enumerate(rows):
        if row is not None and (own := getattr(row[0], field)) is not None:
            found[place, : own.shape[1]] = own[row[1]]
    return found


def _layout(rows: _Rows, n_heads: int, title: str, group: int) -> Spec:
    layout = base_layout(title, say("Head"), say("Layer")) | {"shapes": []}
    bare = {"tickmode": "array", "showgrid": False}
    heads = list(range(0, n_heads, -(-n_heads // 24) or 1))  # more numbers than that would not fit
    layout["xaxis"] |= bare | {"range": [-0.5, n_heads - 0.5], "tickvals": heads}
    layout["xaxis"] |= {"ticktext": [str(head + 1) for head in heads]}
    there = [(place, *row) for place, row in enumerate(rows) if row is not None]
    layout["yaxis"] |= bare | {"range": [len(rows) - 0.5, -1.5], "tickvals": [place for place, *_ in there]}
    layout["yaxis"] |= {"ticktext": [str(layer + 1) for *_, layer in there]}
    cell = np.clip((560 - _MARGINS) / max(len(rows) + 1, 1), _LEAST_CELL, _CELL)
    layout["height"] = int(max(220, _MARGINS + cell * (len(rows) + 1)))
    at = {"xref": "x domain", "xanchor": "left", "yanchor": "middle"}
    layout["annotations"] = [
        note(0, place - 0.75, literal(block.name)) | at for place, block, layer in there if layer == 0
    ]
    named = [
        row and say("{attention}, layer {layer}", attention=literal(row[0].name), layer=bold(str(row[1] + 1)))
        for row in rows
    ]
    columns = [bold(head_named(head, group)) for head in range(n_heads)]
    layout["meta"] = {"cells": {"rows": [name or "" for name in named], "columns": columns}}
    return layout


def _number(value: float, digits: int, *, signed: bool) -> str:
    """With so many digits behind the point; what is 0 by them has no sign."""
    is_none = abs(value) < 0.5 * 10**-digits
    text = f"{value:+.{digits}f}" if signed and not is_none else f"{abs(value):.{digits}f}"
    return text.replace("-", "−")
