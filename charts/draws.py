"""Outputs that were drawn again and again: how often each came, beside how probable it was.

The whiskers are the 95 % interval of the probability, given how often an output came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.hover import bold, on_lines, whole_rows, with_number
from charts.theme import (
    LEGEND,
    MARK_COLOR,
    SOURCE_COLOR,
    TARGET_COLOR,
    TARGET_PALE,
    Spec,
    as_figure,
    base_layout,
    literal,
    shortened,
)
from words import say, say_n

HOW_TO_READ = say(
    "Each row is one output: the bar is how often it was drawn, its whiskers the 95 % interval that this leaves for "
    "its probability, the tick its probability where it was drawn from, the diamond that under the model itself."
)
_FRAME = 128  # pixels
_ROW = 26  # pixels
_LABEL = 28  # letters


@dataclass(frozen=True)
class Drawn:
    """One output."""

    text: str  # what it says
    count: int  # how often it was drawn
    frequency: float  # its share of the draws, its probability where it was drawn from, that under the model
    drawn: float  # its share of the draws, its probability where it was drawn from, that under the model
    own: float  # its share of the draws, its probability where it was drawn from, that under the model
    low: float  # the interval
    high: float  # the interval
    seed: int  # one that draws it


def draws_spec(rows: Sequence[Drawn], *, title: str, chosen: int | None = None) -> Spec:
    """Draw the outputs, the most frequent first.

    Args:
        rows: The outputs that are shown.
        title: What the chart shows.
        chosen: The place of the one that is looked at.

    Returns:
        The figure; a click on a row returns its seed as `customdata`.
    """
    layout = base_layout(title, say("Share, and probability"), say("Output"))
    most = max((max(row.high, row.drawn, row.own) for row in rows), default=1.0)
    layout["xaxis"] |= {"range": [0, min(1.0, 1.04 * most)], "tickformat": ".0%", "fixedrange": True}
    layout["yaxis"] |= {
        "range": [len(rows) - 0.5, -0.5],
        "tickmode": "array",
        "tickvals": list(range(len(rows))),
        "ticktext": [_label(row.text, place == chosen) for place, row in enumerate(rows)],
        "showgrid": False,
        "fixedrange": True,
    }
    layout["margin"] |= {"t": 92}
    layout |= {"bargap": 0.3, "barmode": "overlay", "showlegend": True, "legend": dict(LEGEND)}
    layout["height"] = int(np.clip(_FRAME + _ROW * len(rows), 200, 600))
    layout["meta"] = {"table": {"columns": _COLUMNS, "rows": [_cells(row) for row in rows]}}
    clicked = whole_rows([row.seed for row in rows], [_on_hover(row) for row in rows], width=2 * most)
    return {"data": [_bars(rows, chosen), *_marks(rows), clicked], "layout": layout}


draws = as_figure(draws_spec)

_COLUMNS = [
    say("output"),
    say("draws"),
    say("share"),
    say("interval from"),
    say("interval to"),
    say("probability drawn from"),
    say("the model's own"),
    say("seed"),
]


def _cells(row: Drawn) -> list[object]:
    return [row.text, row.count, row.frequency, row.low, row.high, row.drawn, row.own, row.seed]


def _label(text: str, chosen: bool) -> str:
    label = literal(shortened(text, limit=_LABEL))
    return f"<b>{label}</b>" if chosen else label


def _bars(rows: Sequence[Drawn], chosen: int | None) -> Spec:
    return {
        "type": "bar",
        "name": say("share"),
        "x": np.array([row.frequency for row in rows]),
        "y": np.arange(len(rows)),
        "orientation": "h",
        "hoverinfo": "skip",
        "marker": {
            "color": [TARGET_COLOR if place == chosen else TARGET_PALE for place in range(len(rows))],
            "line": {"color": TARGET_COLOR, "width": 1},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": np.array([row.high - row.frequency for row in rows]),
            "arrayminus": np.array([row.frequency - row.low for row in rows]),
            "color": MARK_COLOR,
            "thickness": 1,
            "width": 4,
        },
    }


def _marks(rows: Sequence[Drawn]) -> list[Spec]:
    tick = {"symbol": "line-ns-open", "size": 15, "color": MARK_COLOR, "line": {"width": 3}}
    diamond = {"symbol": "diamond-open", "size": 8, "color": SOURCE_COLOR, "line": {"width": 2}}
    kinds = ((say("probability"), "drawn", tick), (say("model's own"), "own", diamond))
    return [
        {"type": "scatter", "mode": "markers", "name": name, "x": np.array([getattr(row, field) for row in rows]),
         "y": np.arange(len(rows)), "hoverinfo": "skip", "cliponaxis": False, "marker": marker}
        for name, field, marker in kinds
    ]  # fmt: skip


def _on_hover(row: Drawn) -> str:
    return on_lines(
        bold(row.text),
        say_n("drawn {n} time", "drawn {n} times", row.count),
        with_number(say("share of the draws"), f"{row.frequency:.3f}"),
        say("95 % interval from {low:.3f} to {high:.3f}", low=row.low, high=row.high),
        with_number(say("probability drawn from"), f"{row.drawn:.4g}"),
        with_number(say("the model's own"), f"{row.own:.4g}"),
    )
