"""Sampled outputs: frequency beside probability.

The whiskers are the 95 % interval of the probability, given how often an output came.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, legend, listed, table_of, whole_rows
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal, shortened
from transformer.i18n import say, say_n

HOW_TO_READ = say(
    "Each row is one output. The bar is its share of the draws, with a 95 % interval for its probability. The tick "
    "is its probability after temperature, top-k and top-p; the diamond is the model's own probability."
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
    """Draw the outputs, the most frequent first; a click on a row returns its seed."""
    layout = base_layout(title, say("Share and probability"), say("Output")) | {"bargap": 0.3, "barmode": "overlay"}
    most = max((max(row.high, row.drawn, row.own) for row in rows), default=1.0)
    layout["xaxis"] |= {"range": [0, min(1.0, 1.04 * most)], "tickformat": ".2~f", "fixedrange": True}
    listed(layout, (_label(row.text, place == chosen) for place, row in enumerate(rows)))
    legend(layout, 92)
    layout["height"] = int(np.clip(_FRAME + _ROW * len(rows), 200, 600))
    table_of(
        layout,
        (say("output"), [row.text for row in rows]),
        (say("draws"), [row.count for row in rows]),
        (say("share"), [row.frequency for row in rows]),
        (say("interval from"), [row.low for row in rows]),
        (say("interval to"), [row.high for row in rows]),
        (say("sampling probability"), [row.drawn for row in rows]),
        (say("the model's own"), [row.own for row in rows]),
        (say("seed"), [row.seed for row in rows]),
    )
    shares, drawn, own, low, high = (
        np.array([getattr(row, field) for row in rows]) for field in ("frequency", "drawn", "own", "low", "high")
    )
    shades = [theme.TARGET_COLOR if place == chosen else theme.TARGET_PALE for place in range(len(rows))]
    whiskers = {"type": "data", "symmetric": False, "array": high - shares, "arrayminus": shares - low}
    whiskers |= {"color": theme.MARK_COLOR, "thickness": 1, "width": 4}
    bars = {"marker": {"color": shades, "line": {"color": theme.TARGET_COLOR, "width": 1}}, "error_x": whiskers}
    tick = {"symbol": "line-ns-open", "size": 15, "color": theme.MARK_COLOR, "line": {"width": 3}}
    diamond = {"symbol": "diamond-open", "size": 8, "color": theme.SOURCE_COLOR, "line": {"width": 2}}
    y, whole = np.arange(len(rows)), {"cliponaxis": False}
    data = [
        layer("lying", shares, y, bars, name=say("share")),
        layer("markers", drawn, y, whole | {"marker": tick}, name=say("probability")),
        layer("markers", own, y, whole | {"marker": diamond}, name=say("model's own")),
        whole_rows([row.seed for row in rows], [_on_hover(row) for row in rows], width=2 * most),
    ]
    return {"data": data, "layout": layout}


def _label(text: str, chosen: bool) -> str:
    label = literal(shortened(text, limit=_LABEL))
    return f"<b>{label}</b>" if chosen else label


def _on_hover(row: Drawn) -> str:
    return on_lines(
        bold(row.text),
        say_n("drawn {n} time", "drawn {n} times", row.count),
        with_number(say("share of the draws"), f"{row.frequency:.3f}"),
        say("95 % interval from {low:.3f} to {high:.3f}", low=row.low, high=row.high),
        with_number(say("sampling probability"), f"{row.drawn:.4g}"),
        with_number(say("the model's own"), f"{row.own:.4g}"),
    )
