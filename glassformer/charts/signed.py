"""Rows of positive and negative numbers, such as vectors: one map, with 0 in the middle of its colour scale.

Numbers on hover have six significant digits, enough to check with a calculator.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import grammar, theme
from glassformer.charts.grammar import GREY, along, cells, hatching, one_side
from glassformer.charts.hover import bold, hover, italic, with_number
from glassformer.charts.theme import Spec, base_layout, colour_bar, literal
from transformer.i18n import say

HEIGHT = 260
NUMBER = ".6~g"
"""How hover writes a number: six significant digits."""

_MOST_GAPPED = 40  # above this many rows or columns a gap between cells would eat the cells


def signed_rows_spec(
    rows: np.ndarray,
    labels: Sequence[str],
    *,
    title: str,
    row_axis: str,
    column_axis: str,
    value_name: str,
    marked: Sequence[int] = (),
    closed: Sequence[str] | None = None,
    height: int = HEIGHT,
) -> Spec:
    """Draw rows of positive and negative numbers [row, column], row 0 on top; columns are dimensions, from 0.

    `marked` rows are framed; `closed` says why a row is closed and hatched, "" if it is open. `height` is in pixels.
    """
    values = np.asarray(rows)
    reasons = [""] * len(labels) if closed is None else list(closed)
    if values.ndim != 2 or len(values) != len(labels) or len(reasons) != len(labels):
        raise ValueError(f"{values.shape} numbers and {len(reasons)} reasons for {len(labels)} rows: give one each.")
    layout = base_layout(title, column_axis, row_axis) | {"height": height}
    right = values.shape[1] - 0.5
    layout["xaxis"] |= {"range": [-0.5, right], "tickformat": "d", "showgrid": False}
    along(layout, labels, axis="yaxis")
    columns = [say("dimension {place}", place=place) for place in range(values.shape[1])]
    layout["meta"]["cells"] = {"rows": [bold(label) for label in labels], "columns": columns}
    if not values.size:
        return {"data": [], "layout": layout}
    is_closed = np.array([bool(reason) for reason in reasons])
    drawn = np.where(is_closed[:, None], np.nan, values)
    number = with_number(literal(value_name), f"%{{z:{NUMBER}}}")
    template = hover("%{customdata[0]}", "%{customdata[1]}", number)
    data = [signed_map(drawn, name=literal(value_name), template=template)]
    for row in np.flatnonzero(is_closed).tolist():
        x, y = np.array([-0.5, right, right, -0.5, -0.5]), row + np.array([-0.5, -0.5, 0.5, 0.5, -0.5])
        data += [_closed_row(values.shape, row, reasons[row]), hatching(x, y)]
    layout["shapes"] = [frame(-0.5, right, row - 0.5, row + 0.5) for row in marked]
    return {"data": data, "layout": layout}


def drawable(values: np.ndarray) -> np.ndarray:
    """The numbers, with NaN, which is not drawn, for those that are not finite."""
    return np.where(np.isfinite(values), values, np.nan)


def frame(left: float, right: float, low: float, high: float) -> Spec:
    """A line around a rectangle, in the places of the axes."""
    return grammar.frame((left, right), (low, high), width=1.5)


def signed_map(values: np.ndarray, *, name: str, template: str, bar: tuple[float, float] = (0.5, 1)) -> Spec:
    """The trace of a map [row, column], NaN left out, whose colour scale has 0 in its middle.

    `name` is already escaped, `template` is `says` of `cells`; `bar` has middle and length of the scale next to the
    map, as shares of its height.
    """
    most = one_side(values)
    across, down = (1 if size <= _MOST_GAPPED else 0 for size in (max(values.shape), len(values)))
    scale = colour_bar() | {"y": bar[0], "len": bar[1]}
    found = cells(drawable(values), (-most, most), theme.SIGNED_SCALE, template, bar=scale, gaps=(across, down))
    return found | {"name": name, "hoverongaps": False}


def _closed_row(shape: tuple[int, ...], row: int, reason: str) -> Spec:
    """One grey row that says why."""
    there = np.full(shape, np.nan, dtype=np.float32)
    there[row] = 0
    found = cells(there, (0, 1), GREY, hover(italic(reason)), named=False)
    return found | {"name": literal(reason), "meta": "closed", "hoverongaps": False}
