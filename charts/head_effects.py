"""What zeroing each head changes: a block of tiles for each attention, one colour scale for all of them.

What is measured, and in which unit, the caller says; here stands only how it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.groups import bracket, head_named
from charts.hover import bold, hover, with_number
from charts.signed import drawable
from charts.theme import (
    CELLS,
    MARK_COLOR,
    SCALES,
    SIGNED_SCALE,
    Spec,
    as_figure,
    base_layout,
    colour_bar,
    literal,
)
from words import say

HOW_TO_READ = say("Each cell is one head; the frame is the head that is looked at.")
HOW_TO_READ_SIGNED = say("The colour scale has 0 in its middle.")

NUMBER = ".3~g"
_CELL = 30  # pixels
_LEAST_CELL = 13
_MOST_HEIGHT = 560
_MARGINS = 84
_MOST_WRITTEN = 8  # heads beside each other whose numbers do not touch
_PALE_FROM = 0.6  # of the scale: there pale and dark text are about equally readable, in both themes


@dataclass(frozen=True, eq=False)
class Block:
    """The heads of one attention."""

    name: str  # of the attention
    values: np.ndarray  # `[layer, head]`; NaN where there is no number


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

    Args:
        blocks: The attentions; where one has fewer heads than another, its rows end before.
        title: What the map shows, with its unit.
        value_name: What a number is, on hover and beside the scale.
        signed: Whether numbers lie on both sides of 0, which is then the middle of the scale; else it is its end.
        chosen: Block, layer and head to frame, from 0.
        group: How many heads beside each other share one head of keys and values; they stand under one bracket.

    Returns:
        The figure; `layout.height` suggests a height in pixels. A click's index is a cell; `head_at` says whose.
    """
    starts = _starts(blocks)
    rows = starts[-1] - 1 if blocks else 0
    n_heads = max((block.values.shape[1] for block in blocks), default=0)
    values = np.full((max(rows, 0), n_heads), np.nan, dtype=np.float64)
    for block, start in zip(blocks, starts, strict=False):
        values[start : start + len(block.values), : block.values.shape[1]] = block.values
    layout = _layout(blocks, starts, rows, n_heads, title, group)
    if not values.size:
        return {"data": [], "layout": layout}
    finite = np.abs(values[np.isfinite(values)])
    most = float(finite.max(initial=0)) or 1.0
    ends = (-most, most) if signed else (0.0, most)
    number = with_number(literal(value_name), f"%{{z:{NUMBER}}}")
    data = {
        "type": "heatmap",
        "name": literal(value_name),
        "z": drawable(values).astype(np.float32),
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": SIGNED_SCALE if signed else SCALES["neutral"],
        "meta": CELLS,
        "hoverongaps": False,
        "hovertemplate": hover("%{customdata[0]}, %{customdata[1]}", number),
        "colorbar": colour_bar(literal(value_name)),
        "x0": 0,
        "dx": 1,
        "y0": 0,
        "dy": 1,
        "xgap": 1,
        "ygap": 1,
    }  # fmt: skip
    if n_heads <= _MOST_WRITTEN:
        layout["annotations"] += _written(values, ends, signed=signed)
    if chosen is not None:
        layout["shapes"] = [_frame(starts[chosen[0]] + chosen[1], chosen[2])]
    bracket(layout, n_heads, group)
    return {"data": [data], "layout": layout}


head_effects = as_figure(head_effects_spec)


def head_at(blocks: Sequence[int], row: int, column: int) -> tuple[int, int, int] | None:
    """Block, layer and head, from 0, of a cell; None between blocks.

    Args:
        blocks: The layers of each block.
        row, column: Of the cell.
    """
    for block, n_layers in enumerate(blocks):
        if 0 <= row < n_layers:
            return block, row, column
        row -= n_layers + 1
    return None


def _starts(blocks: Sequence[Block]) -> list[int]:
    """The first row of each block, and of one more; a row is left empty between two."""
    starts = [0]
    for block in blocks:
        starts.append(starts[-1] + len(block.values) + 1)
    return starts


def _layout(blocks: Sequence[Block], starts: Sequence[int], rows: int, n_heads: int, title: str, group: int) -> Spec:
    layout = base_layout(title, say("Head"), say("Layer"))
    step = -(-n_heads // 24) or 1  # more numbers than that would not fit
    layout["xaxis"] |= {
        "range": [-0.5, n_heads - 0.5], "tickmode": "array", "tickvals": list(range(0, n_heads, step)),
        "ticktext": [str(head + 1) for head in range(0, n_heads, step)], "showgrid": False,
    }  # fmt: skip
    places = [
        start + layer for block, start in zip(blocks, starts, strict=False) for layer in range(len(block.values))
    ]
    names = [str(layer + 1) for block in blocks for layer in range(len(block.values))]
    layout["yaxis"] |= {
        "range": [rows - 0.5, -1.5], "tickmode": "array", "tickvals": places, "ticktext": names, "showgrid": False,
    }  # fmt: skip
    cell = np.clip((_MOST_HEIGHT - _MARGINS) / max(rows + 1, 1), _LEAST_CELL, _CELL)
    layout["height"] = int(max(220, _MARGINS + cell * (rows + 1)))
    layout["shapes"] = []
    layout["annotations"] = [
        {"x": 0, "xref": "x domain", "xanchor": "left", "y": start - 0.75, "yanchor": "middle",
         "text": literal(block.name), "showarrow": False}
        for block, start in zip(blocks, starts, strict=False)
    ]  # fmt: skip
    layout["meta"] = {
        "cells": {"rows": _rows(blocks), "columns": [bold(head_named(head, group)) for head in range(n_heads)]}
    }
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


def _written(values: np.ndarray, ends: tuple[float, float], *, signed: bool) -> list[dict[str, object]]:
    """Write each number into its cell, pale where the cell is strong."""
    pale, digits = SCALES["neutral"][0][1], _digits(values, ends[1])
    return [
        {
            "x": column,
            "y": row,
            "text": _number(value, digits, signed=signed),
            "showarrow": False,
            "font": {"color": pale if abs(value) > _PALE_FROM * ends[1] else MARK_COLOR},
        }
        for (row, column), value in np.ndenumerate(values)
        if np.isfinite(value)
    ]


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


def _frame(row: int, column: int) -> Spec:
    line = {"color": MARK_COLOR, "width": 3}
    return {
        "type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5, "line": line,
    }  # fmt: skip
