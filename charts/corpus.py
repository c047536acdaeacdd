"""One measure of a head over many sentences: how it is spread, with its mean and the interval of the mean."""

from __future__ import annotations

import numpy as np

from charts import theme
from charts.grammar import at_a_line, upright
from charts.parameters import number_spread_spec
from charts.theme import Spec, literal
from words import say

HOW_TO_READ_SPREAD = say(
    "Each bar counts the lines whose value falls into one interval. The solid line is the mean over the lines; the "
    "band around it is its 95 % interval, often too narrow to see."
)
_HEIGHT = 280


def measure_spread_spec(
    edges: np.ndarray,
    counts: np.ndarray,
    *,
    mean: float,
    interval: tuple[float, float],
    title: str,
    value_name: str,
    here: float | None = None,
) -> Spec:
    """Draw how a measure is spread: `counts` [interval] of lines between rising `edges` [interval + 1].

    A line marks the `mean`, a band its 95 % `interval`, and a dotted line the value of the line that is looked at,
    `here`.
    """
    spec = number_spread_spec(edges, counts, title=title, value_name=value_name, counted=say("Lines"))
    layout = spec["layout"]
    layout["height"] = _HEIGHT
    if not spec["data"]:
        return spec
    low, high = interval
    band = {"type": "rect", "x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "y domain", "line": {"width": 0}}
    band |= {"fillcolor": theme.MARK_COLOR, "opacity": 0.25}
    marks = [band, upright(mean, theme.MARK_COLOR, width=2, dash="solid", below=False)]
    middle = (edges[0] + edges[-1]) / 2
    names = [(mean, 1.0, say("mean {value:.3g}", value=mean))]
    if here is not None:
        marks.append(upright(here, theme.MARK_COLOR, width=2, below=False))
        names.append((here, 0.88, say("line looked at {value:.3g}", value=here)))
    layout["shapes"] = marks
    layout["annotations"] = [
        at_a_line(x, y, literal(text), left=x > middle) | {"font": {"color": theme.MARK_COLOR}, "yanchor": "top"}
        for x, y, text in names
    ]
    return spec
