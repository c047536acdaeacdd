"""The neurons of a feed-forward sub-layer: how many are silent, and how active some of them are at every token.

Tokens and neurons count from 1 where they are named; `customdata` of a click counts from 0.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    SIDES,
    along,
    at_ends,
    layer,
    legend,
    lying,
    lying_bars,
    numbered,
    stroke,
    table,
)
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, literal, shortened
from transformer.i18n import say

HOW_TO_READ_SHARES = {  # by whether there is a gate
    False: say(
        "Each cell is the share of a layer's neurons that add nothing or almost nothing at one token: the number "
        "of activations a = f(x) at or near 0, divided by d_ff. The frame marks the layer and token that the other "
        "charts show."
    ),
    True: say(
        "Each cell is the share of a layer's neurons that add nothing or almost nothing at one token: the number "
        "of activations a (the gate's value times the value of a second projection) at or near 0, divided by d_ff. "
        "The frame marks the layer and token that the other charts show."
    ),
}
HOW_TO_READ_HISTOGRAM = {  # by whether there is a gate
    False: say(
        "Each bar is the share of all pre-activations x = W_up·h + b that fall into one bin; the stepped line "
        "shows the chosen token only. The curves are this model's activation function and its slope, on the "
        "right-hand scale."
    ),
    True: say(
        "Each bar is the share of all pre-activations x = W_gate·h + b that fall into one bin; the stepped line "
        "shows the chosen token only. The curves are this model's activation function and its slope, on the "
        "right-hand scale. An activation is the function's value times the value of a second projection, W_up."
    ),
}
HOW_TO_READ_TOKENS = say(
    "Each bar is the neuron's activation a at one token: a high bar means that this token's vector activates the "
    "neuron strongly. The vector holds the token itself and what attention has brought from other tokens so far."
)
HOW_TO_READ_MAP = say(
    "Each cell is the activation a of one neuron (column) at one token (row). Columns are ordered by the token at "
    "which the neuron is most active."
)

_MOST_WRITTEN = 8  # tokens; above this a share has no room in its cell


def silent_shares_spec(
    shares: np.ndarray,
    pieces: Sequence[str],
    *,
    marked: tuple[int, int],
    title: str,
    token_axis: str,
    value_name: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the share of silent neurons, 0 to 1, of every layer at every token [layer, token].

    `marked` is a layer and a token, and so is a click's index.
    """
    layers = [str(layer) for layer in range(1, len(shares) + 1)]
    spec = heatmap_spec(
        shares,
        queries=layers,
        keys=pieces,
        allowed=None,
        title=title,
        query_axis=say("Layer"),
        key_axis=token_axis,
        marked_cell=marked,
        colour=colour,
        value_name=value_name,
        rows_sum_to_one=False,
    )
    spec["layout"]["meta"]["cells"]["rows"] = [bold(layer) for layer in layers]
    if len(pieces) <= _MOST_WRITTEN:
        spec["data"][0] |= {"texttemplate": "%{z:.1%}", "textfont": {"size": 11}}
    return spec


def pre_activations_spec(
    edges: np.ndarray,
    everywhere: np.ndarray,
    here: np.ndarray,
    *,
    x: np.ndarray,
    values: np.ndarray,
    slopes: np.ndarray,
    function: str,
    piece: str,
    title: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the distribution of pre-activations, and the activation function over it.

    `edges` of the bins ascend [bin + 1]; `everywhere` and `here`, at the chosen token, are shares of pre-activations,
    0 to 1 [bin]; `x`, `values` and `slopes` are points of the function and of its derivative [point].
    """
    if not (len(edges) - 1 == len(everywhere) == len(here) and len(x) == len(values) == len(slopes)):
        raise ValueError(f"{len(edges)} edges, {len(everywhere)} and {len(here)} shares, or the curves do not fit.")
    layout = base_layout(title, say("Pre-activation x"), say("Share of pre-activations"))
    layout |= {"height": 400, "bargap": 0, "hovermode": "closest"}
    legend(layout, 110)
    layout["xaxis"] |= {"range": [float(edges[0]), float(edges[-1])], "nticks": 8}
    # Both scales have their 0 at the same height; a GELU's lowest point lies a little under it.
    drawn = np.nan_to_num([*values, *slopes])
    low, high = min(0.0, float(drawn.min(initial=0))), float(drawn.max(initial=0)) or 1.0
    most = float(max(np.max(everywhere, initial=0), np.max(here, initial=0))) or 1.0
    layout["yaxis"] |= {"range": [1.2 * most * low / high, 1.05 * most], "tickformat": ".0%", "nticks": 6}
    layout["yaxis"] |= {"fixedrange": True}
    right = {"text": say("{function}(x) and its slope", function=literal(function)), "standoff": 8}
    layout["yaxis2"] = {"title": right, "overlaying": "y", "side": "right", "automargin": True, "showgrid": False}
    layout["yaxis2"] |= {"zeroline": False, "nticks": 6, "fixedrange": True, "tickmode": "auto"}
    layout["yaxis2"] |= {"range": [1.2 * low, 1.05 * high]}
    pale, full = SIDES[colour]
    middles, everyone = (edges[1:] + edges[:-1]) / 2, say("all tokens")
    bins = [say("x from {low:.3f} to {high:.3f}", low=low, high=high) for low, high in itertools.pairwise(edges)]
    bars = layer("bar", middles, everywhere, name=everyone, says=_binned(everyone), texts=bins)
    bars |= {"width": np.diff(edges), "marker": {"color": pale, "line": {"width": 0}}}
    own = layer("lines", middles, here, name=literal(shortened(piece)), says=_binned(literal(piece)), texts=bins)
    own["line"] = {"color": full, "width": 2, "shape": "hvh"}
    data = [bars, own]
    slope = (say("slope"), slopes, theme.NEUTRAL_COLOR, "dot")
    for curve, numbers, shade, dash in ((f"{function}(x)", values, theme.MARK_COLOR, "solid"), slope):
        look, name = stroke(shade, 2, dash) | {"yaxis": "y2"}, literal(curve)
        says = hover("x = %{x:.3f}", with_number(name, "%{y:.3f}"))
        data.append(layer("lines", x, numbers, look, name=name, says=says))
    return {"data": data, "layout": layout}


def _binned(whose: str) -> str:
    return hover("%{hovertext}", with_number(whose, "%{y:.2%}"))


def neuron_tokens_spec(
    activation: np.ndarray,
    pre_activation: np.ndarray,
    pieces: Sequence[str],
    *,
    chosen: int,
    title: str,
    token_axis: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the activation [token] of one neuron at every token; a click returns the token."""
    numbers, before = (np.asarray(values, np.float32) for values in (activation, pre_activation))
    if not numbers.shape == before.shape == (len(pieces),):
        raise ValueError(f"{numbers.shape} and {before.shape} numbers for {len(pieces)} tokens: give one for each.")
    layout = base_layout(title, token_axis, say("Activation")) | {"height": 400, "bargap": 0.25, "barmode": "overlay"}
    along(layout, pieces)
    top = max(0.0, float(np.nan_to_num(numbers).max(initial=0))) or 1.0
    layout["yaxis"] |= {"range": [1.1 * min(0.0, float(np.nan_to_num(numbers).min(initial=0))), 1.08 * top]}
    layout["yaxis"] |= {"nticks": 6, "fixedrange": True}
    if not len(pieces):
        return {"data": [], "layout": layout, "how_to_read": HOW_TO_READ_TOKENS}
    each = zip(numbered(pieces), before, numbers, strict=True)
    texts = [on_lines(name, activations(float(x), float(a))) for name, x, a in each]
    places = np.arange(len(pieces), dtype=np.int32)
    bars = layer("bar", places, numbers, name=say("activation"), texts=texts, clicks=range(len(pieces)))
    pale, full = SIDES[colour]
    bars["marker"] = {"color": [full if place == chosen else pale for place in range(len(pieces))]}
    return {"data": [bars], "layout": layout, "how_to_read": HOW_TO_READ_TOKENS}


def neuron_map_spec(
    activation: np.ndarray,
    neurons: Sequence[int],
    pieces: Sequence[str],
    *,
    marked: tuple[int, int | None],
    title: str,
    token_axis: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the activations [token, neuron] of some neurons, numbered from 0, at every token.

    `marked` is the chosen token, and the place of the chosen neuron, None if it is not drawn. A click's index is
    (token, place of the neuron).
    """
    (token, place), names = marked, [str(neuron + 1) for neuron in neurons]
    most = max(1e-6, float(np.nan_to_num(activation).max(initial=0)))
    spec = heatmap_spec(
        activation, queries=pieces, keys=names, allowed=None, title=title, query_axis=token_axis,
        key_axis=say("Neuron"), marked_row=token, marked_cell=None if place is None else (token, place),
        colour=colour, value_name=say("activation"), limits=(0.0, most), rows_sum_to_one=False,
    )  # fmt: skip
    spec["layout"]["meta"]["cells"]["columns"] = [bold(name) for name in names]
    return spec | {"how_to_read": HOW_TO_READ_MAP}


HOW_TO_READ_ACTIVE = {  # by whether there is a gate
    False: say(
        "Each bar is one neuron's activation a = f(W_up·h + b) at the chosen token, the largest on top. In "
        "brackets: ‖a·w‖, the length of the vector that the neuron adds to the stream, where w is its column of "
        "W_down."
    ),
    True: say(
        "Each bar is one neuron's activation a = f(W_gate·h) × W_up·h at the chosen token, including any biases. "
        "The largest is on top. In brackets: ‖a·w‖, the length of the vector that the neuron adds to the stream, "
        "where w is its column of W_down."
    ),
}
HOW_TO_READ_EFFECT = say(
    "Each bar is how much one piece's logit changes if the activation is 1: W_out·N(w), minus the mean over the "
    "vocabulary, where w is the neuron's column of W_down. This is the direct effect, which bypasses all later "
    "layers. N applies the norms after the neuron, with their standard deviations held fixed."
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

    Each array is [neuron]; `written` is the length of the vector that each writes. `chosen` is a neuron's number.
    """
    numbers = [np.asarray(values, np.float32) for values in (activation, pre_activation, written)]
    if any(values.shape != (len(neurons),) for values in numbers):
        raise ValueError(f"{len(neurons)} neurons: give one number for each.")
    layout = lying(
        title, say("Activation (length of the vector written)"), say("Neuron"), [str(n + 1) for n in neurons]
    )
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
    """Draw the change of each logit for the pieces that a neuron raises and lowers most, the most raised first."""
    if not len(pieces) == len(values) == len(ids):
        raise ValueError(f"{len(pieces)} pieces, {len(values)} values, {len(ids)} ids: give one for each.")
    layout = lying(title, say("Change in the logit"), say("Piece"), [shortened(piece) for piece in pieces])
    most = max(map(abs, values), default=0.0) or 1.0
    layout["xaxis"] |= {"range": [-1.75 * most, 1.75 * most], "nticks": 6, "fixedrange": True}
    layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR}
    layout["annotations"] = at_ends(values, (f"{value:+#.2g}" for value in values), signed=True)
    rows = [[piece, int(i), float(value)] for piece, i, value in zip(pieces, ids, values, strict=True)]
    table(layout, [say("piece"), say("id"), say("change in the logit")], rows)
    bars = lying_bars(values, [theme.TARGET_COLOR if value >= 0 else theme.TARGET_PALE for value in values])
    bars["hovertext"] = [
        on_lines(bold(piece), say("id {id}", id=int(i)), say("logit {change:+.4g}", change=value))
        for piece, i, value in zip(pieces, ids, values, strict=True)
    ]
    return {"data": [bars] if pieces else [], "layout": layout, "how_to_read": HOW_TO_READ_EFFECT}


def activations(before: float, after: float) -> str:
    """The input and the output of a neuron's function, on hover."""
    return say("pre-activation {before:.4g}, activation {after:.4g}", before=before, after=after)
