"""Charts over the distance between query and key: curves, and a map of heads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import Kind, cells, edge, frame, layer, legend, stroke, upright
from glassformer.charts.hover import hover, with_number
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal, subtitle
from transformer.i18n import say

HOW_TO_READ_MAP = say(
    "Each row is one head, each column a distance. The colour shows what is added to the score: purple raises it, "
    "green lowers it. Click a row to follow its head."
)
HOW_TO_READ_SPREADS = say(
    "Each head has two bars: one for q·k, one for the distance bias. The length is how much that term differs "
    "between the keys of a row: its standard deviation, averaged over rows. Only such differences affect the "
    "softmax."
)
DISTANCE_AXIS = say("Distance: key's position − query's position (tokens)")
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
    """Draw curves over the distance [distance] between query and key: the key's position minus the query's.

    `marked` is a distance to mark on the first strong curve; `edges` are the distances where a new bucket begins. A
    click on a curve returns its `place`.
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
        legend(layout, 96)
    layout["shapes"] = [upright(edge, width=0.5) for edge in edges]
    number = with_number(literal(value_name), "%{y:.4~g}")
    ordered = sorted(curves, key=lambda curve: curve.strong)
    data = [_curve(distances, curve, number, several=several) for curve in ordered]
    first = next((curve for curve in curves if curve.strong), None)
    if marked is not None and first is not None and marked in distances:
        x = np.array([marked], np.int32)
        y = np.array([float(first.values[list(distances).index(marked)])], np.float32)
        says = hover(say("actual distance: {distance}", distance="%{x}"), number)
        ring = {"symbol": "circle-open", "size": 16, "color": theme.MARK_COLOR, "line": edge(3)}
        look = {"showlegend": False, "marker": ring}
        data.append(layer("markers", x, y, look, name=say("actual distance"), says=says))
    return {"data": data, "layout": layout}


def _curve(distances: np.ndarray, curve: Curve, number: str, *, several: bool) -> Spec:
    colour = theme.NEUTRAL_COLOR if curve.strong else theme.GUIDE_COLOR
    kind: Kind = "lines+markers" if curve.strong and len(distances) <= _MOST_MARKED else "lines"
    look = stroke(colour, 2.5 if curve.strong else 1, size=5) | {"showlegend": curve.strong and several}
    name = literal(curve.name)
    says = hover(name, say("distance {distance}", distance="%{x}"), number)
    x, y = np.asarray(distances, np.int32), np.asarray(curve.values, np.float32)
    return layer(kind, x, y, look, name=name, says=says, clicks=[curve.place] * len(distances))


def distance_map_spec(
    bias: np.ndarray,
    distances: np.ndarray,
    *,
    title: str,
    buckets: np.ndarray | None = None,
    head: int | None = None,
    note: str = "",
) -> Spec:
    """Draw what each head adds to scores [head, distance], head 1 on top.

    A distance is the key's position minus the query's. `buckets` has the bucket of each distance, from 0, shown on
    hover; `head` is framed. A click's index is (head, distance).
    """
    drawn = np.asarray(bias, np.float32)
    n_heads, n_distances = drawn.shape
    if n_distances != len(distances) or (buckets is not None and len(buckets) != n_distances):
        raise ValueError(f"{drawn.shape} values for {len(distances)} distances.")
    layout = base_layout(title, DISTANCE_AXIS, say("Head"))
    layout["height"] = int(np.clip(150 + 26 * n_heads, 220, 560))
    bare = {"tickmode": "array", "showgrid": False}
    step, every = max(1, n_distances // 12), -(-n_heads // 24)
    shown = [place for place in range(n_distances) if distances[place] % step == 0]
    layout["xaxis"] |= bare | {"tickvals": shown, "ticktext": [str(distances[at]) for at in shown]}
    layout["xaxis"] |= {"range": [-0.5, n_distances - 0.5]}
    heads = list(range(0, n_heads, every))
    layout["yaxis"] |= bare | {"tickvals": heads, "ticktext": [str(one + 1) for one in heads]}
    layout["yaxis"] |= {"range": [n_heads - 0.5, -0.5]}
    subtitle(layout, [literal(note)])
    rows = [say("head {number}", number=f"<b>{one + 1}</b>") for one in range(n_heads)]
    layout["meta"] = {"cells": {"rows": rows, "columns": _columns(distances, buckets)}}
    if head is not None and 0 <= head < n_heads:
        layout["shapes"] = [frame((-0.5, n_distances - 0.5), (head - 0.5, head + 0.5))]
    largest = float(np.abs(drawn).max(initial=0)) or 1.0
    added = say("added to the score")
    says = hover("%{customdata[0]}", "%{customdata[1]}", with_number(added, "%{z:.4~g}"))
    trace = cells(drawn, (-largest, largest), theme.SIGNED_SCALE, says, bar=colour_bar(added))
    return {"data": [trace] if drawn.size else [], "layout": layout, "how_to_read": HOW_TO_READ_MAP}


def _columns(distances: np.ndarray, buckets: np.ndarray | None) -> list[str]:
    if buckets is None:
        return [say("distance {distance}", distance=f"<b>{one}</b>") for one in distances]
    return [
        say("distance {distance}, bucket {bucket}", distance=f"<b>{one}</b>", bucket=int(bucket))
        for one, bucket in zip(distances, buckets, strict=True)
    ]


def spreads_spec(content: np.ndarray, bias: np.ndarray, *, head: int | None, title: str) -> Spec:
    """Draw how much each head's scores vary by q·k [head] and by the distance bias [head]; a click gives the head."""
    n_heads = len(content)
    layout = base_layout(title, say("Head"), say("Standard deviation of the scores in one row"))
    layout |= {"height": 360, "barmode": "group", "bargap": 0.3}
    legend(layout, 88)
    layout["xaxis"] |= {"tickformat": "d", "showgrid": False}
    layout["xaxis"] |= {"dtick": 1} if n_heads <= 24 else {"nticks": 12}
    edges = np.where(np.arange(n_heads) == (-1 if head is None else head), 2, 0)
    places, data = np.arange(1, n_heads + 1, dtype=np.int32), []
    by_bias = (say("from the distance bias"), bias, theme.GUIDE_COLOR)
    for name, values, colour in ((say("from q·k"), content, theme.NEUTRAL_COLOR), by_bias):
        look = {"marker": {"color": colour, "line": edge(edges)}}
        says = hover(say("head {number}", number="%{x}"), with_number(name, "%{y:.4~g}"))
        numbers = np.asarray(values, np.float32)
        data.append(layer("bar", places, numbers, look, name=name, says=says, clicks=range(n_heads)))
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_SPREADS}
