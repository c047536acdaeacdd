"""Two outputs beside each other, piece by piece: what each run gave its pieces, and how far the two disagree.

Rows are places of the aligned outputs, the left run's pieces on the left and the right run's on the right. It does
not know what the two runs differ in: the title says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from charts.hover import bold, hover, on_lines, with_number
from charts.theme import (
    GUIDE_COLOR,
    LEFT_COLOR,
    LEGEND,
    MARK_COLOR,
    RIGHT_COLOR,
    Spec,
    as_figure,
    base_layout,
    ticks,
)
from words import joined, say

HOW_TO_READ = say(
    "Each row is a piece of the left output and one of the right; ≠ marks where they are not the same. ● is the "
    "probability of the left piece in the left run, ◆ that of the right piece in the right run."
)
HOW_TO_READ_CROSSED = say(
    "◇ is the left piece in the right run, had that run written the left output up to there. The bars are "
    "KL(left ‖ right) of the next piece behind the same pieces of the left output, in nats: 0 where both expect the "
    "same."
)
DIVERGENCE = say("KL(left ‖ right) in nats")
DIVERGENCE_AXIS = say("KL(left ‖ right)<br>in nats")

_FRAME = 130  # pixels of title, legend and axes
_ROW = 25
_MOST_HEIGHT = 900
_SPLIT = (0.56, 0.76)  # where probabilities end and divergences begin, of the width
_NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One place of the aligned outputs; None is what there is not."""

    left: str | None  # the pieces
    right: str | None  # the pieces
    same: bool  # whether they are the same piece
    left_step: int | None = None  # their steps, from 0
    right_step: int | None = None  # their steps, from 0
    p_left: float | None = None  # probability of the left piece in the left run
    p_right: float | None = None  # of the right piece in the right run
    p_crossed: float | None = None  # of the left piece in the right run, behind the left output
    p_crossed_back: float | None = None  # of the right piece in the left run, behind the right output
    divergence: float | None = None  # KL(left ‖ right) of the next piece behind the left output, in nats


def aligned_outputs_spec(
    rows: Sequence[Row], *, title: str, first: int | None, follow: Sequence[int | None] = ()
) -> Spec:
    """Draw two outputs beside each other, the first piece on top.

    Args:
        rows: The aligned outputs.
        title: What the two are.
        first: The row of the first difference; None if there is none.
        follow: The row of each step, which the browser marks while the reader steps; none for no mark.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: If a row to be marked is not one of them.
    """
    wrong = [row for row in (first, *follow) if row is not None and not 0 <= row < len(rows)]
    if wrong:
        raise ValueError(f"Row {wrong[0]} of {len(rows)} aligned pieces.")
    crossed = any(row.p_crossed is not None for row in rows)
    layout = _aligned_layout(rows, title, crossed=crossed, first=first)
    if not rows:
        return {"data": [], "layout": layout}
    data = [
        _marks(rows, [row.p_left for row in rows], say("left piece in the left run"), "circle", LEFT_COLOR),
        _marks(rows, [row.p_right for row in rows], say("right piece in the right run"), "diamond", RIGHT_COLOR)
        | {"yaxis": "y2"},
    ]
    if crossed:
        under = _marks(
            rows, [row.p_crossed for row in rows], say("left piece in the right run"), "diamond-open", RIGHT_COLOR
        )
        data = [_joints(rows), *data, under, _divergences(rows)]
    if follow:
        line = {"color": MARK_COLOR, "width": 2}
        frame = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "line": line}
        layout["meta"]["follow"] = {"rows": list(follow), "starts": [0], "marks": [frame]}
    layout["meta"]["table"] = {
        "columns": list(_COLUMNS),
        "rows": [_cells(place, row) for place, row in enumerate(rows)],
    }
    return {"data": data, "layout": layout}


aligned_outputs = as_figure(aligned_outputs_spec)

_COLUMNS = (
    say("row"), say("left step"), say("left piece"), say("right step"), say("right piece"), say("same piece"),
    say("p of the left piece in the left run"), say("p of the left piece in the right run"),
    say("p of the right piece in the right run"), say("p of the right piece in the left run"), DIVERGENCE,
)  # fmt: skip


def _cells(place: int, row: Row) -> list[Any]:
    """A row of the table that is saved, in the order of its columns."""
    steps = [None if step is None else step + 1 for step in (row.left_step, row.right_step)]
    return [
        place + 1, steps[0], row.left, steps[1], row.right, int(row.same), row.p_left, row.p_crossed, row.p_right,
        row.p_crossed_back, row.divergence,
    ]  # fmt: skip


def _aligned_layout(rows: Sequence[Row], title: str, *, crossed: bool, first: int | None) -> dict[str, Any]:
    layout = base_layout(title, say("Probability"), "")
    end = _SPLIT[0] if crossed else 1.0
    layout["xaxis"] |= {
        "range": [-0.02, 1.02],
        "tickformat": ".0%",
        "fixedrange": True,
        "domain": [0, end],
        "nticks": 5,
    }
    places = {"range": [len(rows) - 0.5, -0.5], "fixedrange": True}
    left, right = (
        ticks([_label(piece, row.same) for piece, row in zip(pieces, rows, strict=True)], title=name)
        for pieces, name in (
            ([row.left for row in rows], say("Left output")),
            ([row.right for row in rows], ""),  # the axis stands between two plots
        )
    )
    layout["yaxis"] = {**left["axis"], **places}
    layout["yaxis2"] = {
        **right["axis"], **places, "side": "right", "overlaying": "y", "anchor": "x", "showticklabels": True,
    }  # fmt: skip
    layout["meta"] = {"ticks": {"yaxis": left["spec"], "yaxis2": right["spec"]}}
    if crossed:
        layout["xaxis2"] = {
            "domain": [_SPLIT[1], 1], "anchor": "y", "rangemode": "tozero", "fixedrange": True, "nticks": 4,
            "title": {"text": DIVERGENCE_AXIS, "standoff": 8}, "zeroline": False, "automargin": True,
        }  # fmt: skip
    layout |= {"showlegend": True, "legend": {**LEGEND, "y": 1}, "barmode": "overlay", "bargap": 0.45}
    layout["margin"] |= {"t": 96}
    layout["height"] = int(np.clip(_FRAME + _ROW * len(rows), 260, _MOST_HEIGHT))
    layout["shapes"] = [] if first is None else [_first(first)]
    layout["annotations"] = [_first_named(first, end)] if first else []  # above row 0 stands the legend
    return layout


def _label(piece: str | None, same: bool) -> str:
    shown = _NOTHING if piece is None else piece
    return shown if same else f"≠ {shown}"


def _first(row: int) -> Spec:
    line = {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row - 0.5, "line": line}


def _first_named(row: int, end: float) -> Spec:
    return {
        "x": end / 2, "xref": "paper", "xanchor": "center", "y": row - 0.5, "yref": "y", "yanchor": "bottom",
        "text": say("first difference"), "showarrow": False, "font": {"size": 11},
    }  # fmt: skip


def _marks(rows: Sequence[Row], values: Sequence[float | None], name: str, symbol: str, colour: str) -> Spec:
    there = [place for place, value in enumerate(values) if value is not None]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": np.array([values[place] for place in there], dtype=np.float64),
        "y": np.array(there),
        "hovertext": [_said(rows[place], place) for place in there],
        "hovertemplate": hover("%{hovertext}"),
        "cliponaxis": False,
        "marker": {"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5, "color": colour}},
    }


def _said(row: Row, place: int) -> str:
    """What hover says of a row: all of its numbers."""
    step = say("row {n}", n=place + 1)
    pieces = joined(" | ", [bold(_NOTHING if piece is None else piece) for piece in (row.left, row.right)])
    named = [
        (say("left piece in the left run"), row.p_left, ".4f"),
        (say("left piece in the right run"), row.p_crossed, ".4f"),
        (say("right piece in the right run"), row.p_right, ".4f"),
        (say("right piece in the left run"), row.p_crossed_back, ".4f"),
        (DIVERGENCE, row.divergence, ".4g"),
    ]
    numbers = [with_number(name, format(value, form)) for name, value, form in named if value is not None]
    return on_lines(step, pieces, *numbers)


def _joints(rows: Sequence[Row]) -> Spec:
    """Lines between what both models give the left piece."""
    x, y = [], []
    for place, row in enumerate(rows):
        if row.p_left is not None and row.p_crossed is not None:
            x += [row.p_left, row.p_crossed, np.nan]
            y += [place, place, np.nan]
    return {
        "type": "scatter", "mode": "lines", "x": np.array(x), "y": np.array(y), "showlegend": False,
        "line": {"color": GUIDE_COLOR, "width": 2}, "hoverinfo": "skip",
    }  # fmt: skip


def _divergences(rows: Sequence[Row]) -> Spec:
    there = [place for place, row in enumerate(rows) if row.divergence is not None]
    return {
        "type": "bar",
        "name": DIVERGENCE,
        "showlegend": False,
        "xaxis": "x2",
        "x": np.array([rows[place].divergence for place in there], dtype=np.float64),
        "y": np.array(there),
        "orientation": "h",
        "hovertext": [_said(rows[place], place) for place in there],
        "hovertemplate": hover("%{hovertext}"),
        "marker": {"color": GUIDE_COLOR, "line": {"width": 0}},
    }
