"""Bar chart of a distribution from its edges and counts: how many numbers each interval holds."""

import itertools
import math

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, table, upright
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_SPREAD = say(
    "The range from the smallest to the largest number is divided into equal intervals; each bar counts the "
    "numbers in one of them. A narrow middle with bars far away from it means that a few numbers are much larger "
    "than the rest."
)
HEIGHT = 320


def number_spread_spec(
    edges: np.ndarray,
    counts: np.ndarray,
    *,
    title: str,
    value_name: str,
    counted: str = say("Numbers"),
    log_counts: bool = False,
) -> Spec:
    """Draw the distribution of some numbers: `counts` [interval] of them between rising `edges` [interval + 1].

    `log_counts` makes the axis of counts logarithmic, which shows intervals with few numbers.
    """
    if len(counts) and len(edges) != len(counts) + 1:
        raise ValueError(f"{len(edges)} edges for {len(counts)} counts: give one edge more than counts.")
    layout = base_layout(title, value_name, say("{counted} (log)", counted=counted) if log_counts else counted)
    layout |= {"height": HEIGHT, "bargap": 0, "hovermode": "closest"}
    layout["xaxis"] |= {"nticks": 8, "exponentformat": "power", "showgrid": False}
    layout["yaxis"] |= {"nticks": 6, "fixedrange": True, "rangemode": "tozero"}
    if not len(counts):
        return {"data": [], "layout": layout}
    if log_counts:
        layout["yaxis"] |= {"type": "log", "range": [-0.3, math.log10(max(int(counts.max()), 1)) + 0.1]}
        layout["yaxis"] |= {"dtick": 1, "exponentformat": "power"}
    if edges[0] < 0 < edges[-1]:
        layout["shapes"] = [upright(0.0, width=1.5, below=False)]
    texts = [say("from {low:.4g} to {high:.4g}", low=low, high=high) for low, high in itertools.pairwise(edges)]
    says = hover("%{hovertext}", with_number(literal(counted), "%{y:,}"))
    look = {"width": np.diff(edges), "marker": {"color": theme.NEUTRAL_COLOR, "line": {"width": 0}}}
    bars = layer("bar", (edges[1:] + edges[:-1]) / 2, counts, look, name=counted, says=says, texts=texts)
    rows = [[float(low), float(high), int(n)] for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True)]
    table(layout, [say("from"), say("to"), counted], rows)
    return {"data": [bars], "layout": layout}
