"""One measure of every head as a map, and of one head row by row.

What is measured, and in which unit, the caller says; here stands only how it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.groups import bracket
from charts.heatmap import NUMBER, heatmap_spec
from charts.hover import bold, hover, with_number
from charts.theme import (
    GUIDE_COLOR,
    MARK_COLOR,
    NEUTRAL_COLOR,
    SCALES,
    SOURCE_COLOR,
    TARGET_COLOR,
    Colour,
    Spec,
    as_figure,
    base_layout,
    literal,
    ticks,
)
from words import say

HOW_TO_READ_HEADS = say("Each cell is one head; the frame is the head chosen.")
HOW_TO_READ_ROWS = say(
    "Each bar is the measure in one row of the head's map; the dotted line is their mean, the number in the table."
)

_BARS: dict[Colour, str] = {"source": SOURCE_COLOR, "target": TARGET_COLOR, "neutral": NEUTRAL_COLOR}
_MOST_WRITTEN = 12  # heads beside each other whose numbers do not touch
_PALE_FROM = 0.6  # of the scale: there pale and dark text are about equally readable, in both themes
_CELL = 34  # pixels


def head_measure_spec(
    values: np.ndarray,
    *,
    title: str,
    value_name: str,
    chosen: tuple[int, int] | None = None,
    limits: tuple[float, float] | None = None,
    group: int = 1,
) -> Spec:
    """Draw one number for each head, layer 1 on top.

    Args:
        values: `[layer, head]`; NaN where there is no number.
        title: What the map shows, with its unit.
        value_name: What a number is, on hover and beside the scale.
        chosen: Layer and head to frame, from 0.
        limits: Ends of the colour scale; None takes the smallest and the largest value.
        group: How many heads beside each other share one head of keys and values; they stand under one bracket.

    Returns:
        The figure; `layout.height` suggests a height in pixels. A click's index is `(layer, head)`.
    """
    n_layers, n_heads = np.shape(values)
    layers, heads = _numbers(n_layers), _numbers(n_heads)
    spec = heatmap_spec(
        values,
        queries=layers,
        keys=heads,
        title=title,
        query_axis=say("Layer"),
        key_axis=say("Head"),
        marked_cell=chosen,
        value_name=value_name,
        limits=limits,
        rows_sum_to_one=False,
    )
    layout = spec["layout"]
    layout["height"] = int(np.clip(110 + _CELL * n_layers, 200, 640))
    layout["meta"]["cells"] = {"rows": _bold(layers), "columns": _bold(_heads(n_heads, group))}
    if spec["data"] and n_heads <= _MOST_WRITTEN:
        layout["annotations"] = _written(np.asarray(values), spec["data"][0]["zmin"], spec["data"][0]["zmax"])
    bracket(layout, n_heads, group)
    return spec


head_measure = as_figure(head_measure_spec)


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _heads(count: int, group: int) -> list[str]:
    """The heads on hover, each with the head of keys and values that it shares."""
    if group == 1:
        return _numbers(count)
    return [
        say("{number} (keys and values {group})", number=head + 1, group=head // group + 1) for head in range(count)
    ]


def _bold(names: Sequence[str]) -> list[str]:
    return [bold(name) for name in names]


def _written(values: np.ndarray, low: float, high: float) -> list[dict[str, object]]:
    """Write each number into its cell, pale on the strong half of the scale."""
    pale = SCALES["neutral"][0][1]
    return [
        {
            "x": column,
            "y": row,
            "text": f"{value:.2f}",
            "showarrow": False,
            "font": {"color": pale if value - low > _PALE_FROM * (high - low) else MARK_COLOR},
        }
        for (row, column), value in np.ndenumerate(values)
        if np.isfinite(value)
    ]


def row_measure_spec(
    values: np.ndarray,
    queries: Sequence[str],
    *,
    title: str,
    value_name: str,
    query_axis: str = say("Query"),
    marked_row: int | None = None,
    top: float | None = None,
    colour: Colour = "neutral",
) -> Spec:
    """Draw a measure of one head row by row, with its mean.

    Args:
        values: `[query]`; NaN in rows that do not count, which get no bar.
        queries: A label for each row; equal labels stay apart.
        title: What the chart shows, with its unit.
        value_name: What a number is, on the axis and on hover.
        query_axis: What the rows are.
        marked_row: A row to outline, such as the current step.
        top: The most that the measure can be; None: as high as the highest bar.
        colour: The side that the rows belong to.

    Returns:
        The figure; a click on a bar returns its row as `customdata`.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (len(queries),):
        raise ValueError(f"{numbers.shape} values for {len(queries)} rows: give one each.")
    layout = base_layout(title, query_axis, value_name)
    axis = ticks(queries, title=query_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(queries) - 0.5], "uirevision": "\n".join(queries)}
    layout["yaxis"] |= {"rangemode": "tozero", "fixedrange": True} | ({"range": [0, top]} if top else {})
    layout |= {"bargap": 0.25, "height": 340, "meta": {"ticks": {"xaxis": axis["spec"]}}}
    counted = np.flatnonzero(np.isfinite(numbers))
    if not counted.size:
        return {"data": [], "layout": layout}
    mean = float(numbers[counted].mean())
    layout["shapes"] = [_mean_line(mean)]
    return {"data": [_bars(numbers, counted, queries, value_name, marked_row, _BARS[colour])], "layout": layout}


row_measure = as_figure(row_measure_spec)


def _bars(
    numbers: np.ndarray,
    counted: np.ndarray,
    queries: Sequence[str],
    value_name: str,
    marked_row: int | None,
    colour: str,
) -> Spec:
    return {
        "type": "bar",
        "x": counted,
        "y": numbers[counted],
        "customdata": counted.tolist(),
        "hovertext": [f"{row + 1}: {bold(queries[row])}" for row in counted.tolist()],
        "hovertemplate": hover("%{hovertext}", with_number(literal(value_name), f"%{{y:{NUMBER}}}")),
        "marker": {
            "color": colour,
            "line": {"color": MARK_COLOR, "width": [2 if row == marked_row else 0 for row in counted.tolist()]},
        },
    }


def _mean_line(mean: float) -> dict[str, object]:
    line = {"color": GUIDE_COLOR, "width": 1.5, "dash": "dot"}
    return {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": mean, "y1": mean, "line": line}
