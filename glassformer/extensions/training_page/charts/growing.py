"""Loss curve of a training in progress."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts.grammar import Kind, layer, legend, stroke
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import GUIDE_COLOR, MARK_COLOR, NEUTRAL_COLOR, Spec, base_layout
from transformer.i18n import say

HOW_TO_READ = say(
    "The line is the loss of the last steps; the squares are the loss on the dev pairs, which are not trained on. "
    "The right edge is the end of the training."
)
HEIGHT = 300
Points = Sequence[tuple[int, float]]
_LINE = stroke(GUIDE_COLOR, 2, "solid")
_DEV = stroke(NEUTRAL_COLOR, 2, "dash", size=8, symbol="square")
_EXACT = stroke(MARK_COLOR, 2, "dot", size=8, symbol="triangle-up")


def growing_losses_spec(training: Points, dev: Points, *, steps: int, exact: Points = (), title: str) -> Spec:
    """Draw the loss so far: step and nats per target piece, in training and on the dev pairs.

    `steps` is where the training ends; `exact` is the share of outputs that equal their reference, 0 to 1, on an axis
    of its own.
    """
    layout = base_layout(title, say("Training step"), say("Loss (nats per piece)")) | {"height": HEIGHT}
    legend(layout, 76)
    top = max((loss for _, loss in (*training, *dev) if np.isfinite(loss)), default=1.0)
    layout["xaxis"] |= {"range": [0, max(steps, 1)], "tickformat": ",d", "showgrid": False}
    layout["yaxis"] |= {"range": [0, 1.08 * top], "nticks": 6}
    nats = say("{number} nats", number="%{y:.3f}")
    lines: list[tuple[str, Points, Kind, Spec, str]] = [
        (say("Training loss"), training, "lines", _LINE, nats),
        (say("Dev loss"), dev, "lines+markers", _DEV, nats),
    ]
    if exact:
        lines.append((say("Exact (%)"), [(x, 100 * y) for x, y in exact], "lines+markers", _EXACT, "%{y:.0f} %"))
        layout["yaxis2"] = {"overlaying": "y", "side": "right", "range": [0, 108], "showgrid": False, "dtick": 25}
        layout["yaxis2"] |= {"title": {"text": say("Exact (%)")}}
        layout["margin"]["r"] = 56
    data = []
    for name, points, kind, look, shown in lines:
        x = np.asarray([step for step, _ in points], np.int32)
        y = np.asarray([loss for _, loss in points], np.float64)
        own = {"yaxis": "y2"} if look is _EXACT else {}
        says = hover(with_number(name, shown), say("step {n}", n="%{x:,}"))
        data.append(layer(kind, x, np.where(np.isfinite(y), y, np.nan), look | own, name=name, says=says))
    return {"data": data, "layout": layout}
