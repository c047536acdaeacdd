"""One measure of a head over many sentences: how it is spread, with its mean and the interval of the mean."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import at_a_line, upright
from glassformer.charts.histograms import number_spread_spec
from glassformer.charts.theme import Spec, literal
from transformer.i18n import say

HOW_TO_READ_SPREAD = say(
    "Each bar counts the lines whose value falls into one interval. The solid line is the mean over the lines; the "
    "band around it is its 95 % interval, often too narrow to see."
)
_HEIGHT = 290
_NAMED = 14  # pixels over the bars for names
_NEAR = 0.4  # of the width: names of lines that are nearer could touch


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

    A line marks the `mean`, a band its 95 % `interval`, and a dotted line the value of the selected line,
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
    names = [(mean, say("mean {value:.3g}", value=mean))]
    if here is not None:
        marks.append(upright(here, theme.MARK_COLOR, width=2, below=False))
        names.append((here, say("line looked at {value:.3g}", value=here)))
    layout["shapes"] = marks
    layout["margin"]["t"] += _NAMED
    layout["annotations"] = [
        at_a_line(x, 1, literal(text), left=_is_left(x, names, edges))
        | {"font": {"color": theme.MARK_COLOR}, "yanchor": "bottom"}
        for x, text in names
    ]
    return spec


def _is_left(x: float, names: Sequence[tuple[float, str]], edges: np.ndarray) -> bool:
    """Whether a name stands left of its line: away from another that is near, else towards the middle."""
    width, (low, high) = edges[-1] - edges[0], (min(names)[0], max(names)[0])
    if low < high < low + _NEAR * width:
        return x == low
    return bool(x > edges[0] + width / 2)
