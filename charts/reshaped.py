"""What sampling makes of one step's distribution: the model's own, tempered, and cut, together in one chart.

The axis ends at 0 and 1 on every step and at every setting, so that they can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from charts.candidates import percent
from charts.hover import bold, on_lines, whole_rows, with_number
from charts.theme import (
    GUIDE_COLOR,
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
    "Each row is one piece: the tick is the model's own probability, the diamond what the temperature makes of it, "
    "and the bar what is drawn from once top-k and top-p have cut and the rest was scaled to make 1."
)
_FRAME = 128  # pixels of title, names of the marks and axis
_ROW = 27  # pixels


@dataclass(frozen=True)
class Shares:
    """One piece, or all others together."""

    name: str  # the piece, or what stands for the others
    raw: float  # its probabilities
    tempered: float  # its probabilities
    cut: float  # its probabilities
    id: int | None = None  # of the piece; None for the others
    note: str = ""  # what else is said of it
    drawn: bool = False  # whether the run drew it


def reshaped_spec(
    rows: Sequence[Shares], *, others: tuple[int, Shares] | None, border: int | None, title: str
) -> Spec:
    """Draw the distributions of one step before a piece is drawn.

    Args:
        rows: The pieces, likeliest first.
        others: How many pieces are not listed, and what they have together; None if all are listed.
        border: How many of the rows are left after the cut, if some of them are cut; then a line stands there.
        title: What the chart shows.

    Returns:
        The figure; a click on a bar returns its id as `customdata`.
    """
    shown = [*rows, *([others[1]] if others is not None and others[0] else [])]
    layout = _layout(title, rows, shown)
    if border is not None and 0 < border < len(rows):
        layout["shapes"] = [_border(border)]
    columns = [say("piece"), say("id"), say("the model's own"), say("tempered"), say("drawn from"), say("note")]
    cells = [[row.name, row.id, row.raw, row.tempered, row.cut, row.note] for row in shown]
    layout["meta"] = {"table": {"columns": columns, "rows": cells}}
    clicked = whole_rows([-1 if row.id is None else row.id for row in shown], [_on_hover(row) for row in shown])
    return {"data": [_bars(shown), _diamonds(shown), _ticks(shown), clicked], "layout": layout}


reshaped = as_figure(reshaped_spec)


def others_named(count: int) -> str:
    """What stands for all pieces that are not listed."""
    return say_n("{n:,} other", "{n:,} others", count)


def _layout(title: str, rows: Sequence[Shares], shown: Sequence[Shares]) -> dict[str, Any]:
    layout = base_layout(title, say("Probability"), say("Piece"))
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%", "fixedrange": True}
    layout["yaxis"] |= {
        "range": [len(shown) - 0.5, -0.5],
        "tickmode": "array",
        "tickvals": list(range(len(shown))),
        "ticktext": [_label(row) for row in shown],
        "showgrid": False,
        "fixedrange": True,
    }
    layout["margin"] |= {"r": 68, "t": 92}
    layout |= {"bargap": 0.34, "barmode": "overlay", "showlegend": True, "legend": dict(LEGEND)}
    layout["height"] = int(np.clip(_FRAME + _ROW * len(shown), 220, 560))
    layout["annotations"] = [_at_the_edge(place, row) for place, row in enumerate(shown)]
    return layout


def _label(row: Shares) -> str:
    if row.id is None:
        return row.name
    label = literal(shortened(row.name))
    return f"✓ <b>{label}</b>" if row.drawn else label


def _at_the_edge(place: int, row: Shares) -> Spec:
    text = say("cut off") if row.cut == 0 and row.id is not None else percent(row.cut)
    return {"x": 1, "xref": "paper", "xanchor": "right", "xshift": 64, "y": place, "yref": "y", "text": text,
            "showarrow": False}  # fmt: skip


def _border(after: int) -> Spec:
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": after - 0.5, "y1": after - 0.5,
            "line": {"color": GUIDE_COLOR, "width": 1.5, "dash": "dash"}}  # fmt: skip


def _bars(rows: Sequence[Shares]) -> Spec:
    return {
        "type": "bar",
        "name": say("drawn from"),
        "x": np.array([row.cut for row in rows]),
        "y": np.arange(len(rows)),
        "orientation": "h",
        "hoverinfo": "skip",
        "marker": {
            "color": [TARGET_COLOR if row.drawn else TARGET_PALE for row in rows],
            "line": {"color": TARGET_COLOR, "width": [1.0 if row.cut else 0.0 for row in rows]},
        },
    }


def _diamonds(rows: Sequence[Shares]) -> Spec:
    marker = {"symbol": "diamond-open", "size": 9, "color": SOURCE_COLOR, "line": {"width": 2}}
    return _points(say("tempered"), [row.tempered for row in rows], marker)


def _ticks(rows: Sequence[Shares]) -> Spec:
    marker = {"symbol": "line-ns-open", "size": 13, "color": MARK_COLOR, "line": {"width": 2.5}}
    return _points(say("model's own"), [row.raw for row in rows], marker)


def _points(name: str, values: Sequence[float], marker: Spec) -> Spec:
    return {"type": "scatter", "mode": "markers", "name": name, "x": np.array(values), "y": np.arange(len(values)),
            "hoverinfo": "skip", "cliponaxis": False, "marker": marker}  # fmt: skip


def _on_hover(row: Shares) -> str:
    return on_lines(
        bold(row.name),
        literal(row.note),
        with_number(say("the model's own: probability"), f"{row.raw:.5f}"),
        with_number(say("tempered: probability"), f"{row.tempered:.5f}"),
        with_number(say("drawn from: probability"), f"{row.cut:.5f}"),
    )
