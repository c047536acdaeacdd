"""A table of positions as a map, and which positions in it resemble each other.

Positions and dimensions are counted from 0 here, as in the formula of the paper: dimension 2i is a sine, 2i + 1 its
cosine.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts import theme
from charts.grammar import Kind, cells, layer, stroke, upright
from charts.hover import hover, with_number
from charts.theme import Spec, base_layout, colour_bar, literal, subtitle, ticks
from words import say

HOW_TO_READ_TABLE = say(
    "Each row is the vector PE(p) that is added to the token at position p, counted from 0: token 1 has p = 0. In "
    "the formula, PE(p, 2i) = sin(p / 10000^(2i/d)) and PE(p, 2i+1) = cos(p / 10000^(2i/d)). On a narrow screen "
    "several dimensions share a pixel."
)
HOW_TO_READ_SIMILARITY = say(
    "Each cell compares the vectors of two positions by their dot product p·q = Σ pⱼqⱼ; where only the distance "
    "counts, every diagonal has one colour."
)
HOW_TO_READ_COSINE = say(
    "Each cell is the cosine of the angle between the vectors of two positions, p·q / (‖p‖ ‖q‖): 1 is the same "
    "direction, 0 a right angle."
)
HOW_TO_READ_DISTANCE = say(
    "The line is the mean over all pairs of positions that far apart, the band goes from the least to the largest; a "
    "band without width means that only the distance counts: for the formula p·q = Σ cos((p − q) · wᵢ)."
)

HOW_TO_READ_APART = say(
    "Left of the line stand the sines, the even dimensions; right of it the cosines, the odd ones."
)

POSITION_AXIS = say("Position p")
DIMENSION_AXIS = say("Dimension")
DIMENSION = say("dimension")


def position_table_spec(
    values: np.ndarray,
    *,
    positions: Sequence[int],
    dimensions: Sequence[int],
    title: str,
    note: str = "",
    n_sines: int = 0,
) -> Spec:
    """Draw a table of positions [position, dimension] with position 0 on top.

    `n_sines` of the first dimensions are sines, where the cosines come after them: a line parts the two.
    """
    rows = [f"p = <b>{position}</b>" for position in positions]
    columns = [with_number(DIMENSION, str(dimension)) for dimension in dimensions]
    layout = base_layout(title, DIMENSION_AXIS, POSITION_AXIS)
    number_places(layout, "xaxis", dimensions, title=DIMENSION_AXIS)
    number_places(layout, "yaxis", positions, title=POSITION_AXIS)
    layout["height"] = int(np.clip(170 + 8 * len(positions), 280, 560))
    subtitle(layout, [literal(note)])
    if n_sines:
        layout["shapes"] = [upright(n_sines - 0.5, theme.MARK_COLOR, width=2, dash="", below=False)]
    return _map(values, layout, rows, columns, say("value"), signed=True)


def position_similarity_spec(
    similar: np.ndarray, *, positions: Sequence[int], title: str, value_name: str = "p·q", note: str = ""
) -> Spec:
    """Draw how much every position resembles every other [position, position].

    Colours go by sign if there is a negative value.
    """
    layout = base_layout(title, say("Position q"), POSITION_AXIS)
    number_places(layout, "xaxis", positions, title=say("Position q"))
    number_places(layout, "yaxis", positions, title=POSITION_AXIS)
    layout["height"] = 440
    subtitle(layout, [literal(note)])
    rows, columns = ([f"{name} = <b>{position}</b>" for position in positions] for name in "pq")
    return _map(similar, layout, rows, columns, value_name, signed=bool(np.min(similar, initial=0) < 0))


def similarity_by_distance_spec(
    mean: np.ndarray, low: np.ndarray, high: np.ndarray, *, title: str, value_name: str = "p·q"
) -> Spec:
    """Draw how much positions resemble each other by how far apart they are, over all pairs [distance]."""
    if not len(mean) == len(low) == len(high):
        raise ValueError(f"{len(mean)} means, {len(low)} least and {len(high)} largest values: give one each.")
    layout = base_layout(title, say("Distance |p − q| (positions)"), value_name)
    layout |= {"height": 440, "hovermode": "closest"}
    layout["xaxis"] |= {"showgrid": False, "tickformat": "d"}
    layout["yaxis"] |= {"zeroline": True, "nticks": 7}
    distances, edge = np.arange(len(mean), dtype=np.int32), {"line": {"width": 0}}
    ends = np.stack([low, high], axis=1).astype(np.float32)
    shade = {"fill": "tonexty", "fillcolor": theme.SCALES["neutral"][1][1]}
    says = hover(
        say("distance {distance}", distance="%{x}"),
        with_number(say("mean {value}", value=literal(value_name)), "%{y:.3f}"),
        say("from {low} to {high}", low="%{customdata[0]:.3f}", high="%{customdata[1]:.3f}"),
    )
    look = stroke(theme.NEUTRAL_COLOR, 2, size=6) | {"customdata": ends}
    kind: Kind = "lines+markers" if len(mean) <= 64 else "lines"
    data = [
        layer("lines", distances, ends[:, 0], edge, name=say("least")),
        layer("lines", distances, ends[:, 1], edge | shade, name=say("largest")),
        layer(kind, distances, np.asarray(mean, np.float32), look, name=say("mean"), says=says),
    ]
    return {"data": data, "layout": layout}


def number_places(layout: Spec, name: str, numbers: Sequence[int], *, title: str) -> None:
    """Label an axis of places by their numbers; those that only count from 0 get round ones, as any axis has.

    The first place of a "yaxis" is on top; the layout gets `meta` if it has none.
    """
    count = len(numbers)
    meta = layout.setdefault("meta", {})
    if list(numbers) == list(range(count)):
        layout[name] |= {"tickformat": "d", "nticks": 12, "ticks": "outside", "showgrid": False}
        layout[name] |= {"dtick": 1} if count <= 10 else {}
    else:
        labels = ticks(list(map(str, numbers)), title=title)
        layout[name] = labels["axis"]
        meta["ticks"] = meta.get("ticks", {}) | {name: labels["spec"]}
    ends = [-0.5, count - 0.5]
    layout[name] |= {"range": ends if name == "xaxis" else ends[::-1], "uirevision": str(count)}


def _map(
    values: np.ndarray, layout: Spec, rows: Sequence[str], columns: Sequence[str], value_name: str, *, signed: bool
) -> Spec:
    drawn = np.asarray(values, dtype=np.float32)
    if drawn.shape != (len(rows), len(columns)):
        raise ValueError(f"The map is {drawn.shape}, its labels {(len(rows), len(columns))}: give one for each.")
    layout["meta"]["cells"] = {"rows": list(rows), "columns": list(columns)}
    if not drawn.size:
        return {"data": [], "layout": layout}
    largest = float(np.abs(drawn).max()) or 1.0
    ends = (-largest if signed else float(drawn.min()), largest)
    says = hover("%{customdata[0]}", "%{customdata[1]}", with_number(literal(value_name), "%{z:.3f}"))
    scale, bar = theme.SIGNED_SCALE if signed else theme.SCALES["neutral"], colour_bar(literal(value_name))
    return {"data": [cells(drawn, ends, scale, says, bar=bar)], "layout": layout}
