"""What depends on how far apart query and key are: curves by distance, and a map of heads by distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.hover import hover, with_number
from charts.theme import (
    CELLS,
    GUIDE_COLOR,
    LEGEND,
    MARK_COLOR,
    NEUTRAL_COLOR,
    SIGNED_SCALE,
    Spec,
    as_figure,
    base_layout,
    colour_bar,
    literal,
    subtitle,
)
from words import say

HOW_TO_READ_BIAS_CURVES = say(
    "Each line is one head: what it adds to the score q·k of a query and a key that are so far apart. A bias that is "
    "lower by 1 leaves a key about e = 2.7 times less weight. Left of 0 the key comes before the query."
)
HOW_TO_READ_BIAS_MAP = say(
    "Each row is one head, each column a distance; the colour is what is added to the score: purple raises it, green "
    "lowers it. Click a row to follow its head."
)
HOW_TO_READ_SCORES = say(
    "Each point is the score of the same query and key if the key stood that many tokens from the query; the ring is "
    "where they stand. Left of 0 the key comes before the query."
)
HOW_TO_READ_EVEN = say(
    "Each point is the product q·k of a query with an equal key so far away, if each pair of dimensions were "
    "equally long: the mean of cos(d·wᵢ) over the pairs. It is 1 at distance 0 and falls as the pairs get out of "
    "step; a head's own queries and keys are long in some pairs and short in others."
)
HOW_TO_READ_SPREADS = say(
    "Two bars a head: how far the scores of a query differ from key to key by q·k alone, and by the bias of their "
    "distance (standard deviation over the keys of a row, averaged over rows). The softmax sees such differences "
    "only."
)
DISTANCE_AXIS = say("Distance: key's position − query's (tokens)")
_MOST_MARKED = 80


@dataclass(frozen=True, eq=False)
class Curve:
    """A line over distances."""

    name: str  # what it is
    values: np.ndarray  # one for each distance
    strong: bool = True  # whether it is the one that is looked at; the others stand back
    place: int | None = None  # what a click on it gives; None: nothing


def distance_curves_spec(
    distances: np.ndarray,
    curves: Sequence[Curve],
    *,
    title: str,
    value_name: str,
    marked: int | None = None,
    edges: Sequence[float] = (),
    note: str = "",
) -> Spec:
    """Draw curves over the distance between query and key.

    Args:
        distances: The key's position minus the query's [distance].
        curves: What is drawn; those that are looked at come out on top.
        title: What the chart shows.
        value_name: What a value is.
        marked: A distance to mark on the first strong curve.
        edges: Distances between which one bucket ends and the next begins: thin lines.
        note: Shown under the title.

    Returns:
        The figure; a click on a curve gives its place as `customdata`.

    Raises:
        ValueError: If a curve has not one value for each distance.
    """
    for curve in curves:
        if len(curve.values) != len(distances):
            raise ValueError(f"{curve.name} has {len(curve.values)} values for {len(distances)} distances.")
    layout = base_layout(title, DISTANCE_AXIS, value_name) | {"height": 440, "hovermode": "closest"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d", "nticks": 12}
    layout["yaxis"] |= {"nticks": 7, "zeroline": True}
    subtitle(layout, [literal(note)])
    several = sum(curve.strong for curve in curves) > 1
    if several:
        layout |= {"showlegend": True, "legend": dict(LEGEND)}
        layout["margin"]["t"] = 96
    layout["shapes"] = [
        {"type": "line", "x0": edge, "x1": edge, "y0": 0, "y1": 1, "yref": "y domain", "layer": "below",
         "line": {"color": GUIDE_COLOR, "width": 0.5, "dash": "dot"}}
        for edge in edges
    ]  # fmt: skip
    ordered = sorted(curves, key=lambda curve: curve.strong)
    data = [_curve(distances, curve, value_name, several=several) for curve in ordered]
    first = next((curve for curve in curves if curve.strong), None)
    if marked is not None and first is not None and marked in distances:
        data.append(_ring(marked, float(first.values[list(distances).index(marked)]), value_name))
    return {"data": data, "layout": layout}


def _curve(distances: np.ndarray, curve: Curve, value_name: str, *, several: bool) -> Spec:
    colour = NEUTRAL_COLOR if curve.strong else GUIDE_COLOR
    marks = curve.strong and len(distances) <= _MOST_MARKED
    return {
        "type": "scatter",
        "name": literal(curve.name),
        "showlegend": curve.strong and several,
        "x": np.asarray(distances, np.int32),
        "y": np.asarray(curve.values, np.float32),
        "customdata": [curve.place] * len(distances),
        "mode": "lines+markers" if marks else "lines",
        "line": {"color": colour, "width": 2.5 if curve.strong else 1},
        "marker": {"color": colour, "size": 5},
        "hovertemplate": hover(
            literal(curve.name),
            say("distance {distance}", distance="%{x}"),
            with_number(literal(value_name), "%{y:.4~g}"),
        ),
    }


def _ring(distance: int, value: float, value_name: str) -> Spec:
    return {
        "type": "scatter",
        "name": say("where they stand"),
        "showlegend": False,
        "x": np.array([distance], np.int32),
        "y": np.array([value], np.float32),
        "mode": "markers",
        "marker": {
            "symbol": "circle-open",
            "size": 16,
            "color": MARK_COLOR,
            "line": {"color": MARK_COLOR, "width": 3},
        },
        "hovertemplate": hover(
            say("where they stand: distance {distance}", distance="%{x}"),
            with_number(literal(value_name), "%{y:.4~g}"),
        ),
    }


def distance_map_spec(
    bias: np.ndarray,
    distances: np.ndarray,
    *,
    title: str,
    buckets: np.ndarray | None = None,
    head: int | None = None,
    note: str = "",
) -> Spec:
    """Draw what each head adds to scores by distance, head 1 on top.

    Args:
        bias: [head, distance].
        distances: The key's position minus the query's [distance].
        title: What the map shows.
        buckets: The bucket of each distance, from 0, said on hover; None if there are none.
        head: A head to frame, from 0.
        note: Shown under the title.

    Returns:
        The figure; a click's index is (head, distance).

    Raises:
        ValueError: If the sizes do not fit together.
    """
    drawn = np.asarray(bias, np.float32)
    n_heads, n_distances = drawn.shape
    if n_distances != len(distances) or (buckets is not None and len(buckets) != n_distances):
        raise ValueError(f"{drawn.shape} values for {len(distances)} distances.")
    layout = base_layout(title, DISTANCE_AXIS, say("Head"))
    layout["height"] = int(np.clip(150 + 26 * n_heads, 220, 560))
    step = max(1, n_distances // 12)
    shown = [place for place in range(n_distances) if distances[place] % step == 0]
    layout["xaxis"] |= {"tickmode": "array", "tickvals": shown, "ticktext": [str(distances[at]) for at in shown],
                        "showgrid": False, "range": [-0.5, n_distances - 0.5]}  # fmt: skip
    every = -(-n_heads // 24)
    layout["yaxis"] |= {"tickmode": "array", "tickvals": list(range(0, n_heads, every)), "showgrid": False,
                        "ticktext": [str(one + 1) for one in range(0, n_heads, every)],
                        "range": [n_heads - 0.5, -0.5]}  # fmt: skip
    subtitle(layout, [literal(note)])
    rows = [say("head {number}", number=f"<b>{one + 1}</b>") for one in range(n_heads)]
    layout["meta"] = {"cells": {"rows": rows, "columns": _columns(distances, buckets)}}
    if head is not None and 0 <= head < n_heads:
        layout["shapes"] = [{"type": "rect", "x0": -0.5, "x1": n_distances - 0.5, "y0": head - 0.5, "y1": head + 0.5,
                             "line": {"color": MARK_COLOR, "width": 2}}]  # fmt: skip
    largest = float(np.abs(drawn).max(initial=0)) or 1.0
    added = say("added to the score")
    trace = {
        "type": "heatmap", "z": drawn, "zmin": -largest, "zmax": largest, "colorscale": SIGNED_SCALE, "meta": CELLS,
        "hovertemplate": hover("%{customdata[0]}", "%{customdata[1]}", with_number(added, "%{z:.4~g}")),
        "colorbar": colour_bar(added), "x0": 0, "dx": 1, "y0": 0, "dy": 1,
    }  # fmt: skip
    return {"data": [trace] if drawn.size else [], "layout": layout}


def _columns(distances: np.ndarray, buckets: np.ndarray | None) -> list[str]:
    if buckets is None:
        return [say("distance {distance}", distance=f"<b>{one}</b>") for one in distances]
    return [
        say("distance {distance}, bucket {bucket}", distance=f"<b>{one}</b>", bucket=int(bucket))
        for one, bucket in zip(distances, buckets, strict=True)
    ]


def spreads_spec(content: np.ndarray, bias: np.ndarray, *, head: int | None, title: str) -> Spec:
    """Draw for each head how far scores differ by q·k, and by the bias of the distance.

    Args:
        content, bias: One for each head.
        head: A head to mark, from 0.
        title: What the chart shows.

    Returns:
        The figure; a click on a bar gives its head as `customdata`.
    """
    n_heads = len(content)
    layout = base_layout(title, say("Head"), say("Standard deviation of scores in a row"))
    layout |= {"height": 360, "barmode": "group", "bargap": 0.3, "showlegend": True, "legend": dict(LEGEND)}
    layout["margin"]["t"] = 88
    layout["xaxis"] |= {"tickformat": "d", "showgrid": False}
    layout["xaxis"] |= {"dtick": 1} if n_heads <= 24 else {"nticks": 12}
    both = [(say("by q·k"), content, NEUTRAL_COLOR), (say("by the bias of the distance"), bias, GUIDE_COLOR)]
    data = [
        {
            "type": "bar",
            "name": name,
            "x": np.arange(1, n_heads + 1, dtype=np.int32),
            "y": np.asarray(values, np.float32),
            "customdata": list(range(n_heads)),
            "marker": {"color": colour, "line": {"color": MARK_COLOR, "width": np.where(
                np.arange(n_heads) == (-1 if head is None else head), 2, 0)}},
            "hovertemplate": hover(say("head {number}", number="%{x}"), with_number(name, "%{y:.4~g}")),
        }
        for name, values, colour in both
    ]  # fmt: skip
    return {"data": data, "layout": layout}


distance_curves = as_figure(distance_curves_spec)
distance_map = as_figure(distance_map_spec)
spreads = as_figure(spreads_spec)
