"""Bars that lie: the most active neurons of a token, and the pieces whose logits a neuron raises and lowers.

Neurons count from 1 where they are named; `customdata` of a click counts from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, on_lines
from charts.theme import (
    GUIDE_COLOR,
    NEUTRAL_COLOR,
    SOURCE_COLOR,
    SOURCE_PALE,
    TARGET_COLOR,
    TARGET_PALE,
    Colour,
    Spec,
    as_figure,
    base_layout,
    literal,
    shortened,
)
from words import say

HOW_TO_READ_ACTIVE = say(
    "Each bar is one neuron's activation a = f(W_up·h + b) at the chosen token, the largest on top; in brackets is "
    "‖a·w‖, the length of what it adds to the stream, with w its column of W_down."
)
HOW_TO_READ_ACTIVE_GATED = say(
    "Each bar is one neuron's activation a = f(W_gate·h) × W_up·h at the chosen token, biases added where there are "
    "some, the largest on top; in brackets is ‖a·w‖, the length of what it adds to the stream, with w its column of "
    "W_down."
)
HOW_TO_READ_EFFECT = say(
    "Each bar is the change of one piece's logit, W_out·N(w), for an activation of 1, less the mean over the "
    "vocabulary: the direct effect, past all later layers; N are the norms after it, their deviation held as it was."
)

SIDES: dict[Colour, tuple[str, str]] = {
    "source": (SOURCE_PALE, SOURCE_COLOR),
    "target": (TARGET_PALE, TARGET_COLOR),
    "neutral": (GUIDE_COLOR, NEUTRAL_COLOR),
}
"""A pale and a full shade of each side."""


def active_neurons_spec(
    neurons: Sequence[int],
    activation: np.ndarray,
    pre_activation: np.ndarray,
    written: np.ndarray,
    *,
    chosen: int | None,
    title: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the most active neurons of one token, the first on top.

    Args:
        neurons: Their numbers, from 0.
        activation, pre_activation: Of each `[neuron]`.
        written: Length of what each writes `[neuron]`.
        chosen: The neuron that is looked at, in full colour if it is there.
        title: What the chart shows.
        colour: Whose token it is.

    Returns:
        The figure; a click on a bar returns its neuron as `customdata`.

    Raises:
        ValueError: If there is not one number for each neuron.
    """
    numbers = [np.asarray(values, np.float32) for values in (activation, pre_activation, written)]
    if any(values.shape != (len(neurons),) for values in numbers):
        raise ValueError(f"{len(neurons)} neurons: give one number for each.")
    names = [say("neuron {number}", number=neuron + 1) for neuron in neurons]
    layout = lying(title, say("Activation (length of what it writes)"), say("Neuron"), [str(n + 1) for n in neurons])
    top = max(0.0, float(np.nan_to_num(numbers[0]).max(initial=0))) or 1.0
    low = min(0.0, float(np.nan_to_num(numbers[0]).min(initial=0)))
    layout["xaxis"] |= {"range": [1.05 * low, 1.42 * top], "nticks": 6, "fixedrange": True}
    layout["annotations"] = [
        {"x": max(0.0, float(value)), "y": place, "xanchor": "left", "xshift": 4, "showarrow": False,
         "text": f"{value:#.3g} ({length:#.3g})"}
        for place, (value, length) in enumerate(zip(numbers[0], numbers[2], strict=True))
    ]  # fmt: skip
    pale, full = SIDES[colour]
    columns = [say("neuron"), say("activation"), say("pre-activation"), say("written")]
    rows = [
        [neuron + 1, float(a), float(x), float(length)]
        for neuron, a, x, length in zip(neurons, *numbers, strict=True)
    ]
    layout["meta"] = {"table": {"columns": columns, "rows": rows}}
    bars = lying_bars(numbers[0], [full if neuron == chosen else pale for neuron in neurons])
    bars["customdata"] = [int(neuron) for neuron in neurons]
    bars["hovertext"] = [
        on_lines(
            bold(name),
            activations(float(x), float(a)),
            say("writes a vector of length {length:.4g}", length=length),
        )
        for name, a, x, length in zip(names, *numbers, strict=True)
    ]
    return {"data": [bars] if names else [], "layout": layout}


active_neurons = as_figure(active_neurons_spec)


def logit_effect_spec(pieces: Sequence[str], values: Sequence[float], ids: Sequence[int], *, title: str) -> Spec:
    """Draw the pieces that a neuron raises and lowers most.

    Args:
        pieces: The most raised first, the most lowered last.
        values: The change of the logit of each.
        ids: Their ids.
        title: What the chart shows.

    Raises:
        ValueError: If the lists differ in length.
    """
    if not len(pieces) == len(values) == len(ids):
        raise ValueError(f"{len(pieces)} pieces, {len(values)} values, {len(ids)} ids: give one for each.")
    layout = lying(title, say("Change of the logit"), say("Piece"), [shortened(piece) for piece in pieces])
    most = max(map(abs, values), default=0.0) or 1.0
    layout["xaxis"] |= {"range": [-1.75 * most, 1.75 * most], "nticks": 6, "fixedrange": True}
    layout["xaxis"] |= {"zeroline": True, "zerolinecolor": GUIDE_COLOR}
    layout["annotations"] = [
        {"x": value, "y": place, "text": f"{value:+#.2g}", "showarrow": False,
         "xanchor": "left" if value >= 0 else "right", "xshift": 4 if value >= 0 else -4}
        for place, value in enumerate(values)
    ]  # fmt: skip
    rows = [[piece, int(i), float(value)] for piece, i, value in zip(pieces, ids, values, strict=True)]
    layout["meta"] = {"table": {"columns": [say("piece"), say("id"), say("change of the logit")], "rows": rows}}
    bars = lying_bars(values, [TARGET_COLOR if value >= 0 else TARGET_PALE for value in values])
    bars["hovertext"] = [
        on_lines(bold(piece), say("id {id}", id=int(i)), say("logit {change:+.4g}", change=value))
        for piece, i, value in zip(pieces, ids, values, strict=True)
    ]
    return {"data": [bars] if pieces else [], "layout": layout}


logit_effect = as_figure(logit_effect_spec)


def activations(before: float, after: float) -> str:
    """What goes into a neuron's function and what comes out, on hover.

    Args:
        before, after: Pre-activation and activation.
    """
    return say("pre-activation {before:.4g}, activation {after:.4g}", before=before, after=after)


def lying(title: str, x_title: str, y_title: str, labels: Sequence[str]) -> Spec:
    """The layout of bars that lie, one a row."""
    layout = base_layout(title, x_title, y_title)
    rows = {"tickmode": "array", "tickvals": list(range(len(labels))), "ticktext": list(map(literal, labels))}
    layout["yaxis"] |= {**rows, "range": [len(labels) - 0.5, -0.5], "showgrid": False, "fixedrange": True}
    return layout | {"bargap": 0.25, "barmode": "overlay", "height": int(np.clip(116 + 24 * len(labels), 200, 560))}


def lying_bars(values: Sequence[float] | np.ndarray, shades: Sequence[str]) -> Spec:
    """The bars themselves, a colour each; hover is for the caller to fill in."""
    return {
        "type": "bar",
        "orientation": "h",
        "x": np.asarray(values, np.float32),
        "y": np.arange(len(values), dtype=np.int32),
        "hovertemplate": hover("%{hovertext}"),
        "marker": {"color": list(shades)},
    }
