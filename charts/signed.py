"""Rows of numbers on both sides of 0, such as vectors: one map, its colours growing away from 0 in its middle.

Numbers on hover have six significant digits, enough to go on with a calculator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, italic, with_number
from charts.theme import (
    CELLS,
    MARK_COLOR,
    MASK_COLOR,
    MASK_LINE,
    SIGNED_SCALE,
    Spec,
    as_figure,
    base_layout,
    colour_bar,
    literal,
    ticks,
)
from words import say

HEIGHT = 260
NUMBER = ".6~g"
"""How hover writes a number: six significant digits."""

_MOST_GAPPED = 40  # above this many rows or columns a gap between cells would eat the cells


def signed_rows_spec(
    rows: np.ndarray,
    labels: Sequence[str],
    *,
    title: str,
    row_axis: str,
    column_axis: str,
    value_name: str,
    marked: Sequence[int] = (),
    closed: Sequence[str] | None = None,
    height: int = HEIGHT,
) -> Spec:
    """Draw rows of numbers on both sides of 0, row 0 on top; columns are dimensions, counted from 0.

    Args:
        rows: `[row, column]`.
        labels: A label for each row; equal labels stay apart.
        title: What the chart shows.
        row_axis: What the rows are.
        column_axis: What the columns are.
        value_name: What a number is.
        marked: Rows to frame.
        closed: Why a row is closed, "" if it is open; closed rows are hatched. None: all are open.
        height: In pixels.

    Raises:
        ValueError: There is not one label for each row.
    """
    values = np.asarray(rows)
    reasons = [""] * len(labels) if closed is None else list(closed)
    if values.ndim != 2 or len(values) != len(labels) or len(reasons) != len(labels):
        raise ValueError(f"{values.shape} numbers and {len(reasons)} reasons for {len(labels)} rows: give one each.")
    layout = base_layout(title, column_axis, row_axis)
    down = ticks(labels, title=row_axis)
    n_columns = values.shape[1]
    layout["xaxis"] |= {"range": [-0.5, n_columns - 0.5], "tickformat": "d", "showgrid": False}
    layout["yaxis"] = {**down["axis"], "range": [len(labels) - 0.5, -0.5], "uirevision": "\n".join(labels)}
    columns = [say("dimension {place}", place=place) for place in range(n_columns)]
    layout["meta"] = {
        "cells": {"rows": [bold(label) for label in labels], "columns": columns},
        "ticks": {"yaxis": down["spec"]},
    }
    layout["height"] = height
    if not values.size:
        return {"data": [], "layout": layout}
    is_closed = np.array([bool(reason) for reason in reasons])
    drawn = np.where(is_closed[:, None], np.nan, values)
    number = with_number(literal(value_name), f"%{{z:{NUMBER}}}")
    template = hover("%{customdata[0]}", "%{customdata[1]}", number)
    data = [signed_map(drawn, name=literal(value_name), template=template)]
    for row in np.flatnonzero(is_closed).tolist():
        data += [_closed_row(values.shape, row, reasons[row]), _hatching(n_columns, row)]
    layout["shapes"] = [frame(-0.5, n_columns - 0.5, row - 0.5, row + 0.5) for row in marked]
    return {"data": data, "layout": layout}


signed_rows = as_figure(signed_rows_spec)


def drawable(values: np.ndarray) -> np.ndarray:
    """The numbers, with NaN, which is left out, for what is none."""
    return np.where(np.isfinite(values), values, np.nan)


def frame(left: float, right: float, low: float, high: float) -> Spec:
    """A line around a rectangle, in the places of the axes."""
    line = {"color": MARK_COLOR, "width": 1.5}
    return {"type": "rect", "x0": left, "x1": right, "y0": low, "y1": high, "line": line}


def signed_map(values: np.ndarray, *, name: str, template: str, bar: tuple[float, float] = (0.5, 1)) -> Spec:
    """The trace of a map whose colour scale has 0 in its middle.

    Args:
        values: `[row, column]`; NaN is left out.
        name: What a number is, already escaped.
        template: What hover says; `%{customdata[0]}` and `[1]` are the cell's row and column.
        bar: Middle and length of the scale beside the map, as shares of its height.
    """
    finite = np.abs(values[np.isfinite(values)])
    most = float(finite.max(initial=0)) or 1.0
    gap = 1 if max(values.shape) <= _MOST_GAPPED else 0
    return {
        "type": "heatmap",
        "name": name,
        "z": drawable(values),
        "zmin": -most,
        "zmax": most,
        "colorscale": SIGNED_SCALE,
        "meta": CELLS,
        "hoverongaps": False,
        "hovertemplate": template,
        "colorbar": colour_bar() | {"y": bar[0], "len": bar[1]},
        "x0": 0,
        "dx": 1,
        "y0": 0,
        "dy": 1,
        "xgap": gap,
        "ygap": 1 if len(values) <= _MOST_GAPPED else 0,
    }


def _closed_row(shape: tuple[int, ...], row: int, reason: str) -> Spec:
    """One grey row that says why."""
    there = np.full(shape, np.nan, dtype=np.float32)
    there[row] = 0
    return {
        "type": "heatmap",
        "name": literal(reason),
        "z": there,
        "zmin": 0,
        "zmax": 1,
        "colorscale": [[0, MASK_COLOR], [1, MASK_COLOR]],
        "showscale": False,
        "meta": "closed",
        "hoverongaps": False,
        "hovertemplate": hover(italic(reason)),
        **{"x0": 0, "dx": 1, "y0": 0, "dy": 1},
    }


def _hatching(n_columns: int, row: int) -> Spec:
    """Hatch a row; it takes no hover and no click, so those reach the row under it."""
    return {
        "type": "scatter",
        "x": np.array([-0.5, n_columns - 0.5, n_columns - 0.5, -0.5, -0.5]),
        "y": np.array([row - 0.5, row - 0.5, row + 0.5, row + 0.5, row - 0.5]),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillpattern": {"shape": "/", "fgcolor": MASK_LINE, "bgcolor": "rgba(0,0,0,0)", "size": 7, "solidity": 0.14},
        "hoverinfo": "skip",
    }
