"""Counts as bars: costs of components, distributions of numbers, pre-activations under their function, votes."""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, layer, legend, listed, stroke, table, table_of, upright
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import GUIDE_COLOR, SOURCE_COLOR, Colour, Spec, base_layout, literal, shortened
from transformer.i18n import joined, say

HOW_TO_READ_SHARES = say(
    "Each pair of bars is one component: its share of all parameters and its share of all multiply-adds. The bars "
    "of one colour sum to 100 %."
)


def cost_shares_spec(
    names: Sequence[str], parameters: Sequence[int], multiply_adds: Sequence[int], *, title: str
) -> Spec:
    """Draw each component's share of the learned parameters and of the multiply-adds of a pass, the first on top."""
    if not len(names) == len(parameters) == len(multiply_adds):
        raise ValueError(
            f"{len(names)} names, {len(parameters)} counts of parameters and {len(multiply_adds)} of multiply-adds: "
            "give one of each for every component."
        )
    layout = base_layout(title, say("Share (%)"), "") | {"barmode": "group", "bargap": 0.3, "bargroupgap": 0}
    layout["height"] = 130 + 40 * len(names)
    legend(layout, 80)
    listed(layout, map(literal, names))
    traces = [
        _shares(say("Parameters"), parameters, names, str(theme.SCALES["neutral"][1][1])),
        _shares(say("Multiply-adds"), multiply_adds, names, theme.NEUTRAL_COLOR),
    ]
    first, second = (trace["x"] for trace in traces)
    layout["xaxis"] |= {"range": [0, max(1.0, 1.22 * max([*first, *second], default=0.0))], "nticks": 6}
    layout["xaxis"] |= {"fixedrange": True}
    table_of(
        layout,
        (say("Component"), names),
        (say("Parameters"), parameters),
        (say("Share of parameters (%)"), first),
        (say("Multiply-adds"), multiply_adds),
        (say("Share of multiply-adds (%)"), second),
    )
    return {"data": traces, "layout": layout, "how_to_read": HOW_TO_READ_SHARES}


def _shares(name: str, counts: Sequence[int], names: Sequence[str], colour: str) -> Spec:
    shares = [100 * count / (sum(counts) or 1) for count in counts]
    pairs = list(zip(counts, shares, strict=True))
    written = [f"{share:.1f}" if count else "0" for count, share in pairs]
    said = [
        say("{name}: {count}, {share:.2f} &#37;", name=name, count=f"<b>{count:,}</b>", share=share)
        for count, share in pairs
    ]
    texts = [on_lines(literal(label), text) for label, text in zip(names, said, strict=True)]
    look = {"text": written, "textposition": "outside", "textfont": {"size": 11}, "cliponaxis": False}
    look |= {"marker": {"color": colour}}
    return layer("lying", shares, list(range(len(names))), look, name=name, texts=texts)


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
    both = {"nticks": 6, "fixedrange": True}
    layout["yaxis"] |= both | {"range": [1.2 * most * low / high, 1.05 * most], "tickformat": ".0%"}
    right = {"text": say("{function}(x) and its slope", function=literal(function)), "standoff": 8}
    layout["yaxis2"] = both | {"title": right, "overlaying": "y", "side": "right", "automargin": True}
    layout["yaxis2"] |= {"showgrid": False, "zeroline": False, "tickmode": "auto", "range": [1.2 * low, 1.05 * high]}
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


# ------------------------------------------------------------------------------------------------ votes

HOW_TO_READ_VOTES = say("Each bar shows how many people chose that answer.")
_BAR, _AROUND = 34, 120  # pixels
_LARGE: Final = 1.6  # for a wall, beside what a presentation enlarges
RIGHT: Final = "✓"
_ROUNDS: Final = ((say("This round"), SOURCE_COLOR), (say("Previous round"), GUIDE_COLOR))


def votes_spec(
    rounds: Sequence[Sequence[int]],
    choices: Sequence[str],
    *,
    title: str,
    right: int | None = None,
    large: bool = False,
) -> Spec:
    """Draw the votes for each choice, the first choice on top.

    `rounds` are counts [round, choice] of the latest round, and of the one before if there was one. `right` is the
    choice marked as right; `large` letters can be read across a classroom.
    """
    if not 1 <= len(rounds) <= len(_ROUNDS) or any(len(counts) != len(choices) for counts in rounds):
        raise ValueError(f"{[len(counts) for counts in rounds]} counts for {len(choices)} choices: give one each.")
    places, most = list(range(len(choices))), max(1, *(count for counts in rounds for count in counts))
    layout = base_layout(title, "", "")
    labels = [literal(shortened(one, limit=40)) for one in choices]
    if right is not None:
        labels[right] = joined(" ", [RIGHT, labels[right]])
    rows = {"tickvals": places, "ticktext": labels, "range": [len(choices) - 0.5, -0.5]}
    layout["yaxis"] |= rows | {"automargin": True, "showgrid": False}
    tick = next(step for step in (1, 2, 5, 10, 20, 50) if most / step <= 10)
    layout["xaxis"] |= {"range": [0, most * 1.12], "dtick": tick}
    legend(layout, 92 if len(rounds) > 1 else layout["margin"]["t"])
    layout["legend"]["traceorder"] = "normal"
    layout |= {"barmode": "group", "bargap": 0.3, "bargroupgap": 0.05, "showlegend": len(rounds) > 1}
    layout["height"] = _AROUND + _BAR * len(choices) * len(rounds) + _BAR * len(choices) // 2
    texts, bars = [bold(choice) for choice in choices], []
    for (name, colour), counts in zip(_ROUNDS, rounds, strict=False):
        look = {"text": [str(count) for count in counts], "textposition": "outside", "cliponaxis": False}
        look |= {"marker": {"color": colour}}
        says = hover("%{hovertext}", with_number(name, "%{x}"))
        bars.append(layer("lying", list(counts), places, look, name=name, says=says, texts=texts))
    if large:
        _enlarge(layout, bars)
    return {"data": bars, "layout": layout}


def _enlarge(layout: dict[str, Any], bars: list[dict[str, Any]]) -> None:
    """Letters for a wall, which says above the chart what a title would."""
    layout["title"]["text"] = ""
    layout["margin"]["t"] = 56 if layout["showlegend"] else 8
    layout["yaxis"]["tickfont"] = {"size": round(13 * _LARGE)}
    layout["xaxis"]["tickfont"] = {"size": 13}
    layout["legend"]["font"] = {"size": round(12 * _LARGE)}
    for one in bars:
        one["textfont"] = {"size": round(13 * _LARGE)}
