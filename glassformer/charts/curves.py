"""Curves over the steps of a run."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts.grammar import layer, stroke, upright
from glassformer.charts.hover import hover
from glassformer.charts.theme import MARK_COLOR, TARGET_COLOR, Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ = say("The higher the point, the less sure the model was at that step.")

_MOST_MARKED = 48  # steps with a mark each; more marks would run into each other


def entropy_spec(
    values: Sequence[float],
    labels: Sequence[str],
    *,
    step: int | None,
    title: str = say("How unsure each step was"),
    unit: str = say("bits"),
    measure: str = say("Entropy"),
) -> Spec:
    """Draw how unsure a model was at each step: the entropy of the next piece's distribution, or another measure.

    `unit` is "bits" or "nats", "" for a share from 0 to 1. `labels` describe each step on hover. A click returns the
    step.
    """
    heights = np.asarray(values, dtype=np.float64)
    if len(heights) != len(labels):
        raise ValueError(f"{len(heights)} values and {len(labels)} labels: give one label for each step.")
    name = say("{measure} ({unit})", measure=measure, unit=unit) if unit else measure
    layout = base_layout(title, say("Step"), name)
    finite = heights[np.isfinite(heights)]
    layout["yaxis"] |= {"range": [0, max(1.0, float(finite.max(initial=0)) * 1.12)], "nticks": 6}
    beside = max(0.5, len(heights) / 40)  # steps of room for the mark of the first and of the last
    layout["xaxis"] |= {"range": [1 - beside, len(heights) + beside], "tickformat": "d", "showgrid": False}
    layout["xaxis"] |= {"dtick": 1} if len(heights) <= 20 else {"nticks": 10}
    # A step among many is found by its column: its point is too small to be hit.
    layout |= {"height": 280, "hovermode": "closest" if len(heights) <= _MOST_MARKED else "x"}
    if not len(heights):
        return {"data": [], "layout": layout}
    here = np.arange(len(heights)) == (-1 if step is None else step)
    if here.any():
        layout["shapes"] = [upright(int(here.argmax()) + 1)]
    return {"data": [_line(heights, labels, here, unit)], "layout": layout}


def _line(heights: np.ndarray, labels: Sequence[str], here: np.ndarray, unit: str) -> Spec:
    many = len(heights) > _MOST_MARKED
    number = say("<b>{number} {unit}</b>", number="%{y:.2f}", unit=literal(unit)) if unit else "<b>%{y:.3f}</b>"
    look = stroke(TARGET_COLOR, 1.25 if many else 2, size=0) | {"cliponaxis": False}
    look["marker"] |= {"size": np.where(here, 11 if many else 13, 2 if many else 7)}
    look["marker"] |= {"line": {"color": MARK_COLOR, "width": np.where(here, 2, 0)}}
    says = hover(say("Step {step}: {what}", step="%{x}", what="%{hovertext}"), number)
    x, texts = np.arange(1, len(heights) + 1), [literal(label) for label in labels]
    return layer("lines+markers", x, heights, look, says=says, texts=texts, clicks=range(len(heights)))
