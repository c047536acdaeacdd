"""Bars that lie: the most active neurons of a token, and the pieces whose logits a neuron raises and lowers.

Neurons count from 1 where they are named; `customdata` of a click counts from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts import theme
from charts.grammar import SIDES, at_ends, layer, listed, table
from charts.hover import bold, on_lines
from charts.theme import Colour, Spec, base_layout, literal, shortened
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
    """Draw the most active neurons, numbered from 0, of one token, the first on top; a click returns the neuron.

    Each array is [neuron]; `written` is the length of what each writes. `chosen` is the number of a neuron.
    """
    numbers = [np.asarray(values, np.float32) for values in (activation, pre_activation, written)]
    if any(values.shape != (len(neurons),) for values in numbers):
        raise ValueError(f"{len(neurons)} neurons: give one number for each.")
    layout = lying(title, say("Activation (length of what it writes)"), say("Neuron"), [str(n + 1) for n in neurons])
    top = max(0.0, float(np.nan_to_num(numbers[0]).max(initial=0))) or 1.0
    low = min(0.0, float(np.nan_to_num(numbers[0]).min(initial=0)))
    layout["xaxis"] |= {"range": [1.05 * low, 1.42 * top], "nticks": 6, "fixedrange": True}
    written_out = [f"{a:#.3g} ({length:#.3g})" for a, length in zip(numbers[0], numbers[2], strict=True)]
    layout["annotations"] = at_ends((max(0.0, float(a)) for a in numbers[0]), written_out)
    rows = [[neuron + 1, *map(float, row)] for neuron, *row in zip(neurons, *numbers, strict=True)]
    table(layout, [say("neuron"), say("activation"), say("pre-activation"), say("written")], rows)
    pale, full = SIDES[colour]
    bars = lying_bars(numbers[0], [full if neuron == chosen else pale for neuron in neurons])
    bars["customdata"] = [int(neuron) for neuron in neurons]
    bars["hovertext"] = [
        on_lines(
            bold(say("neuron {number}", number=number)),
            activations(x, a),
            say("writes a vector of length {length:.4g}", length=length),
        )
        for (number, _, x, _), a, length in zip(rows, numbers[0].tolist(), numbers[2], strict=True)
    ]
    return {"data": [bars] if rows else [], "layout": layout}


def logit_effect_spec(pieces: Sequence[str], values: Sequence[float], ids: Sequence[int], *, title: str) -> Spec:
    """Draw the pieces that a neuron raises and lowers most, the most raised first: the change of each logit."""
    if not len(pieces) == len(values) == len(ids):
        raise ValueError(f"{len(pieces)} pieces, {len(values)} values, {len(ids)} ids: give one for each.")
    layout = lying(title, say("Change of the logit"), say("Piece"), [shortened(piece) for piece in pieces])
    most = max(map(abs, values), default=0.0) or 1.0
    layout["xaxis"] |= {"range": [-1.75 * most, 1.75 * most], "nticks": 6, "fixedrange": True}
    layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR}
    layout["annotations"] = at_ends(values, (f"{value:+#.2g}" for value in values), signed=True)
    rows = [[piece, int(i), float(value)] for piece, i, value in zip(pieces, ids, values, strict=True)]
    table(layout, [say("piece"), say("id"), say("change of the logit")], rows)
    bars = lying_bars(values, [theme.TARGET_COLOR if value >= 0 else theme.TARGET_PALE for value in values])
    bars["hovertext"] = [
        on_lines(bold(piece), say("id {id}", id=int(i)), say("logit {change:+.4g}", change=value))
        for piece, i, value in zip(pieces, ids, values, strict=True)
    ]
    return {"data": [bars] if pieces else [], "layout": layout}


def activations(before: float, after: float) -> str:
    """What goes into a neuron's function and what comes out, on hover."""
    return say("pre-activation {before:.4g}, activation {after:.4g}", before=before, after=after)


def lying(title: str, x_title: str, y_title: str, labels: Sequence[str]) -> Spec:
    """The layout of bars that lie, one a row."""
    layout = base_layout(title, x_title, y_title) | {"bargap": 0.25, "barmode": "overlay"}
    listed(layout, map(literal, labels))
    return layout | {"height": int(np.clip(116 + 24 * len(labels), 200, 560))}


def lying_bars(values: Sequence[float] | np.ndarray, shades: Sequence[str]) -> Spec:
    """The bars themselves, a colour each; hover is for the caller to fill in."""
    bars = layer("lying", np.asarray(values, np.float32), np.arange(len(values), dtype=np.int32), texts=())
    return bars | {"marker": {"color": list(shades)}}
