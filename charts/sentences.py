"""Many lines of a file, each a point or a part of a bar: two numbers of each, and how one number is spread."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, with_number
from charts.theme import (
    LEGEND,
    MARK_COLOR,
    NEUTRAL_COLOR,
    TARGET_COLOR,
    Spec,
    as_figure,
    base_layout,
    literal,
    shortened,
)
from words import say

HOW_TO_READ_POINTS = say("Each point is one line of the file; a click opens it.")
HOW_TO_READ_SPREAD = say("Each bar counts the lines whose number falls into its part of the axis.")

_HEIGHT = 250
_BINS = 20
_TEXT = 60  # characters of a line on hover


def line_points_spec(
    x: np.ndarray,
    y: np.ndarray,
    texts: Sequence[str],
    *,
    numbers: Sequence[int],
    cut: Sequence[bool],
    chosen: int | None,
    x_name: str,
    y_name: str,
    title: str,
) -> Spec:
    """Draw two numbers of each line against each other.

    Args:
        x, y: The numbers [line], all finite.
        texts: What each line says.
        numbers: Of the lines in their file; a click on a point returns it as `customdata`.
        cut: Whether its output was cut at the limit; such points are open and of another colour.
        chosen: The number of the line that is looked at, ringed; None rings none.
        x_name, y_name: What the numbers are, with their units.
        title: What the chart shows.

    Raises:
        ValueError: If the lists differ in length.
    """
    if not len(x) == len(y) == len(texts) == len(numbers) == len(cut):
        raise ValueError(f"{len(x)} numbers: give a second one, a text, a number and a mark for each line.")
    layout = base_layout(title, x_name, y_name) | {"height": _HEIGHT, "hovermode": "closest"}
    layout["showlegend"] = any(cut)
    layout["legend"] = dict(LEGEND)
    layout["margin"]["t"] = 78 if any(cut) else layout["margin"]["t"]
    styles: tuple[tuple[bool, str, Spec], ...] = (
        (False, say("ended"), {"color": NEUTRAL_COLOR, "symbol": "circle", "size": 7, "opacity": 0.65}),
        (True, say("cut at the limit"), {"color": TARGET_COLOR, "symbol": "circle-open", "size": 8}),
    )
    data = []
    for is_cut, name, marker in styles:
        places = [i for i, one in enumerate(cut) if bool(one) == is_cut]
        if places:
            part = np.array(places)
            data.append(
                _points(x[part], y[part], [texts[i] for i in places], [numbers[i] for i in places], x_name, y_name)
                | {"name": name, "marker": marker}
            )
    ring = [i for i, number in enumerate(numbers) if number == chosen]
    return {"data": [*data, *(_ring(float(x[i]), float(y[i])) for i in ring)], "layout": layout}


def line_spread_spec(values: np.ndarray, *, name: str, title: str) -> Spec:
    """Draw how a number is spread over the lines.

    Args:
        values: One of each line, all finite, at least one.
        name: What they are, with their unit.
        title: What the chart shows.
    """
    counts, edges = np.histogram(np.asarray(values, np.float64), bins=_BINS)
    layout = base_layout(title, name, say("Lines")) | {"height": _HEIGHT, "bargap": 0.04}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6, "fixedrange": True}
    columns = [say("from"), say("to"), say("Lines")]
    rows = [[float(a), float(b), int(n)] for a, b, n in zip(edges, edges[1:], counts, strict=False)]
    layout["meta"] = {"table": {"columns": columns, "rows": rows}}
    bars: Spec = {
        "type": "bar",
        "x": (edges[:-1] + edges[1:]) / 2,
        "y": counts.astype(np.int32),
        "width": np.diff(edges),
        "hovertext": [say("{low:.2f} to {high:.2f}", low=a, high=b) for a, b, _ in rows],
        "hovertemplate": hover("%{hovertext}", with_number(say("Lines"), "%{y}")),
        "marker": {"color": NEUTRAL_COLOR},
    }
    return {"data": [bars], "layout": layout}


line_points = as_figure(line_points_spec)
line_spread = as_figure(line_spread_spec)


def _points(
    x: np.ndarray, y: np.ndarray, texts: Sequence[str], numbers: Sequence[int], x_name: str, y_name: str
) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x.astype(np.float32),
        "y": y.astype(np.float32),
        "customdata": list(numbers),
        "hovertext": [
            say("Line {n}: {text}", n=number, text=bold(shortened(text, limit=_TEXT)))
            for number, text in zip(numbers, texts, strict=True)
        ],
        "hovertemplate": hover(
            "%{hovertext}", with_number(literal(x_name), "%{x:.3f}"), with_number(literal(y_name), "%{y:.3f}")
        ),
    }


def _ring(x: float, y: float) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [x],
        "y": [y],
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {"color": MARK_COLOR, "symbol": "circle-open", "size": 16, "line": {"width": 2}},
    }
