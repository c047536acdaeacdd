"""Head measures: a heatmap of all heads, and one head per row.

The caller says what is measured, and its unit; this module only draws it.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, along, in_cells, layer, level
from glassformer.charts.groups import bracket
from glassformer.charts.heatmap import NUMBER, heatmap_spec
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_HEADS = say("Each cell is one head. The frame marks the chosen head.")
HOW_TO_READ_ROWS = say(
    "Each bar is the measure's value for one row of the head's map. The dotted line is the mean of these values, "
    "which is the number in the table."
)

_MOST_WRITTEN = 12  # heads beside each other whose numbers do not touch
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
    """Draw one number for each head [layer, head], layer 1 on top; NaN where there is no number.

    `limits` are the ends of the colour scale; None takes the smallest and the largest value. `group` neighbouring
    heads share one key-value head, under one bracket. A click's index is (layer, head).
    """
    n_layers, n_heads = np.shape(values)
    layers, heads = _numbers(n_layers), _numbers(n_heads)
    spec = heatmap_spec(
        values,
        queries=layers,
        keys=heads,
        allowed=None,
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
    names = [[bold(name) for name in ones] for ones in (layers, _heads(n_heads, group))]
    layout["meta"]["cells"] = {"rows": names[0], "columns": names[1]}
    if spec["data"] and n_heads <= _MOST_WRITTEN:
        numbers, low, high = np.asarray(values), spec["data"][0]["zmin"], spec["data"][0]["zmax"]
        shares = np.maximum(numbers - low, 0) / ((high - low) or 1.0)
        layout["annotations"] = in_cells(numbers, shares, lambda value, _: f"{value:.2f}")
    bracket(layout, n_heads, group)
    return spec


def _numbers(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _heads(count: int, group: int) -> list[str]:
    """The heads on hover, each with the head of keys and values that it shares."""
    if group == 1:
        return _numbers(count)
    return [say("{number} (key-value head {group})", number=head + 1, group=head // group + 1) for head in range(count)]


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
    """Draw a measure of one head row by row [query], with its mean; NaN in rows that do not count, which get no bar.

    `top` is the largest possible value; None: the highest bar. A click returns the row.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (len(queries),):
        raise ValueError(f"{numbers.shape} values for {len(queries)} rows: give one each.")
    layout = base_layout(title, query_axis, value_name) | {"bargap": 0.25, "height": 340}
    along(layout, queries)
    layout["yaxis"] |= {"rangemode": "tozero", "fixedrange": True} | ({"range": [0, top]} if top else {})
    counted = np.flatnonzero(np.isfinite(numbers))
    if not counted.size:
        return {"data": [], "layout": layout}
    layout["shapes"] = [level(float(numbers[counted].mean()))]
    edges = {"color": theme.MARK_COLOR, "width": [2 if row == marked_row else 0 for row in counted.tolist()]}
    look = {"marker": {"color": SIDES[colour][1], "line": edges}}
    says = hover("%{hovertext}", with_number(literal(value_name), f"%{{y:{NUMBER}}}"))
    texts = [f"{row + 1}: {bold(queries[row])}" for row in counted.tolist()]
    bars = layer("bar", counted, numbers[counted], look, says=says, texts=texts, clicks=counted.tolist())
    return {"data": [bars], "layout": layout}
