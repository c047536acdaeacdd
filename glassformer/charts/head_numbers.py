"""One number for each head as tiles: a block for each attention, one colour scale for all.

The caller says what is measured, and its unit; this module only draws it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import cells, drawable, frame, in_cells, note, one_side
from glassformer.charts.grid import bracket, head_named
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal
from transformer.i18n import say

HOW_TO_READ = say("Each cell is one head. The frame marks the chosen head.")
HOW_TO_READ_SIGNED = say("The colour scale is centred on 0.")

NUMBER = ".3~g"
_CELL = 30  # pixels
_LEAST_CELL = 13
_MOST_HEIGHT = 560
_MARGINS = 84
_MOST_WRITTEN = 8  # heads beside each other whose numbers do not touch


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
    starts = _starts(blocks)
    rows = starts[-1] - 1 if blocks else 0
    n_heads = max((block.values.shape[1] for block in blocks), default=0)
    values = _below_each_other(blocks, "values", np.nan)
    texts, marked = _below_each_other(blocks, "says", ""), _below_each_other(blocks, "marked", False)
    layout = _layout(blocks, starts, rows, n_heads, title, group)
    if not values.size:
        return {"data": [], "layout": layout}
    most = one_side(values)
    ends, scale = ((-most, most), theme.SIGNED_SCALE) if signed else ((0.0, most), theme.SCALES["neutral"])
    more = {"text": texts.tolist()} if texts.any() else {}
    number = with_number(literal(value_name), f"%{{z:{NUMBER}}}")
    says = hover("%{customdata[0]}, %{customdata[1]}", number, "%{text}" if more else "")
    drawn = drawable(values).astype(np.float32)
    data = cells(drawn, ends, scale, says, bar=colour_bar(literal(value_name)), gaps=(1, 1))
    data |= {"name": literal(value_name), "hoverongaps": False} | more
    if n_heads <= _MOST_WRITTEN:
        digits = _digits(values, most)
        written = partial(_number, digits=digits, signed=signed)
        layout["annotations"] += in_cells(values, values / most, lambda value, _: written(value))
    layout["annotations"] += [
        star | {"x": star["x"] + 0.4, "y": star["y"] - 0.12, "font": star["font"] | {"size": 15}}
        for star in in_cells(np.where(marked, values, np.nan), values / most, lambda *_: "*")
    ]
    if chosen is not None:
        row, column = starts[chosen[0]] + chosen[1], chosen[2]
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


def _below_each_other(blocks: Sequence[Block], field: str, empty: Any) -> np.ndarray:
    """A field of all blocks [row, head], with an empty row between two."""
    n_heads = max((block.values.shape[1] for block in blocks), default=0)
    found = np.full((max(_starts(blocks)[-1] - 1, 0), n_heads), empty, object if empty == "" else None)
    for block, start in zip(blocks, _starts(blocks), strict=False):
        if (own := getattr(block, field)) is not None:
            found[start : start + len(own), : own.shape[1]] = own
    return found


def _starts(blocks: Sequence[Block]) -> list[int]:
    """The first row of each block, and of one more; a row is left empty between two."""
    starts = [0]
    for block in blocks:
        starts.append(starts[-1] + len(block.values) + 1)
    return starts


def _layout(blocks: Sequence[Block], starts: Sequence[int], rows: int, n_heads: int, title: str, group: int) -> Spec:
    layout = base_layout(title, say("Head"), say("Layer")) | {"shapes": []}
    bare = {"tickmode": "array", "showgrid": False}
    heads = list(range(0, n_heads, -(-n_heads // 24) or 1))  # more numbers than that would not fit
    layout["xaxis"] |= bare | {"range": [-0.5, n_heads - 0.5], "tickvals": heads}
    layout["xaxis"] |= {"ticktext": [str(head + 1) for head in heads]}
    each = [(start, n) for block, start in zip(blocks, starts, strict=False) for n in range(len(block.values))]
    layout["yaxis"] |= bare | {"range": [rows - 0.5, -1.5], "tickvals": [start + layer for start, layer in each]}
    layout["yaxis"] |= {"ticktext": [str(layer + 1) for _, layer in each]}
    cell = np.clip((_MOST_HEIGHT - _MARGINS) / max(rows + 1, 1), _LEAST_CELL, _CELL)
    layout["height"] = int(max(220, _MARGINS + cell * (rows + 1)))
    at = {"xref": "x domain", "xanchor": "left", "yanchor": "middle"}
    layout["annotations"] = [
        note(0, start - 0.75, literal(block.name)) | at for block, start in zip(blocks, starts, strict=False)
    ]
    columns = [bold(head_named(head, group)) for head in range(n_heads)]
    layout["meta"] = {"cells": {"rows": _rows(blocks), "columns": columns}}
    return layout


def _rows(blocks: Sequence[Block]) -> list[str]:
    """What each row is called on hover; the empty ones nothing."""
    named: list[str] = []
    for block in blocks:
        named += [""] * bool(named)
        named += [
            say("{attention}, layer {layer}", attention=literal(block.name), layer=bold(str(layer + 1)))
            for layer in range(len(block.values))
        ]
    return named


def _digits(values: np.ndarray, most: float) -> int:
    """How many digits behind the point tell the largest numbers apart; none for counts."""
    finite = values[np.isfinite(values)]
    if (finite == np.round(finite)).all():
        return 0
    return int(np.clip(1 - np.floor(np.log10(most)), 2, 4))


def _number(value: float, digits: int, *, signed: bool) -> str:
    """With so many digits behind the point; what is 0 by them has no sign."""
    is_none = abs(value) < 0.5 * 10**-digits
    text = f"{value:+.{digits}f}" if signed and not is_none else f"{abs(value):.{digits}f}"
    return text.replace("-", "−")
