"""Two runs beside each other, of which one has a mistake in it: a number of each token, a number of each layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, with_number
from charts.theme import (
    GUIDE_COLOR,
    LEGEND,
    TARGET_COLOR,
    Spec,
    as_figure,
    base_layout,
    literal,
    ticks,
)
from words import say

HOW_TO_READ_BARS = say("Each group is one token; its two bars are the two sides that are named above the chart.")
HOW_TO_READ_LAYERS = say("From left to right one layer after the other; the two lines are the two sides.")

_STYLES = ((GUIDE_COLOR, "circle"), (TARGET_COLOR, "square"))
_MOST_BARS = 40  # tokens; above this bars are too thin to be told apart


def two_bars_spec(
    pieces: Sequence[str],
    numbers: Sequence[tuple[str, np.ndarray | None]],
    *,
    title: str,
    value_name: str,
    token_axis: str,
    form: str = ".3f",
    top: float | None = None,
) -> Spec:
    """Draw a number of each token in two runs, side by side.

    Args:
        pieces: The tokens, in order; equal ones stay apart.
        numbers: The right run's name and values [token], then the other's; None where there is none to draw.
        title: What the chart shows.
        value_name: What a number is, with its unit.
        token_axis: What the tokens are.
        form: How a number is written on hover.
        top: The end of the axis; None takes that of the numbers.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: There is not one value for each token.
    """
    layout = base_layout(title, token_axis, value_name) | {"showlegend": True, "height": 340}
    axis = ticks(pieces, title=token_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(pieces) - 0.5]}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6} | ({} if top is None else {"range": [0, top]})
    layout["legend"], layout["margin"]["t"] = dict(LEGEND), 92
    layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0, "hovermode": "closest"}
    layout["meta"] = {"ticks": {"xaxis": axis["spec"]}}
    data = []
    for (name, values), (colour, symbol) in zip(numbers, _STYLES, strict=False):
        if values is None:
            continue
        if np.shape(values) != (len(pieces),):
            raise ValueError(f"{len(pieces)} tokens and {np.shape(values)} values of {name}: give one for each.")
        shape = {"type": "bar"} if len(pieces) <= _MOST_BARS else {"type": "scatter", "mode": "markers"}
        data.append(
            {
                **shape,
                "name": literal(name),
                "x": np.arange(len(pieces), dtype=np.int32),
                "y": np.asarray(values, np.float64),
                "hovertext": [f"{n}: {bold(piece)}" for n, piece in enumerate(pieces, start=1)],
                "hovertemplate": hover("%{hovertext}", with_number(name, f"%{{y:{form}}}")),
                "marker": {"color": colour, "symbol": symbol} if len(pieces) > _MOST_BARS else {"color": colour},
            }
        )
    return {"data": data, "layout": layout}


def two_lines_spec(
    depths: Sequence[str],
    numbers: Sequence[tuple[str, np.ndarray | None]],
    *,
    title: str,
    value_name: str,
    depth_axis: str,
    limits: tuple[float, float] | None = None,
) -> Spec:
    """Draw a number at each depth of a stack in two runs.

    Args:
        depths: Names of the depths, in the order of the computation.
        numbers: The right run's name and values [depth], then the other's; None where there is none to draw.
        title: What the chart shows.
        value_name: What a number is, with its unit.
        depth_axis: What the depths are.
        limits: Ends of the axis; None takes those of the numbers.

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: There is not one value for each depth.
    """
    layout = base_layout(title, depth_axis, value_name) | {"showlegend": True, "height": 340}
    places = list(range(len(depths)))
    layout["xaxis"] |= {"tickvals": places, "ticktext": list(map(literal, depths))}
    layout["xaxis"] |= {"range": [-0.3, len(depths) - 0.7]}
    layout["yaxis"] |= {"nticks": 6, "zeroline": True} | ({} if limits is None else {"range": list(limits)})
    layout["legend"], layout["margin"]["t"] = dict(LEGEND), 92
    data = []
    for (name, values), (colour, symbol) in zip(numbers, _STYLES, strict=False):
        if values is None:
            continue
        if np.shape(values) != (len(depths),):
            raise ValueError(f"{len(depths)} depths and {np.shape(values)} values of {name}: give one for each.")
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": literal(name),
                "x": places,
                "y": np.asarray(values, np.float64),
                "hovertext": [bold(depth) for depth in depths],
                "hovertemplate": hover("%{hovertext}", with_number(name, "%{y:.3f}")),
                "line": {"color": colour, "width": 2},
                "marker": {"color": colour, "symbol": symbol, "size": 9},
                "cliponaxis": False,
            }
        )
    return {"data": data, "layout": layout}


two_bars = as_figure(two_bars_spec)
two_lines = as_figure(two_lines_spec)
