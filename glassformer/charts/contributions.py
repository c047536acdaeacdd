"""The parts whose sum is a logit: by layer and component as a map, and the largest as bars.

In the map, rows are places of the decoder in the order of the computation; a cell without a part is empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.credit import number, signed_cells, written
from glassformer.charts.grammar import along, at_ends, frame, lying, lying_bars, table
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import joined, say

HOW_TO_READ_MAP = say(
    "Each cell is what one part of the decoder adds directly to the logit, not counting its influence on later "
    "parts. Purple raises the logit, green lowers it. Click a head to choose it."
)
HOW_TO_READ_BARS = say(
    "Each bar is what one part adds to the logit; the largest, regardless of sign, is on top. The last row is the "
    "sum of all other parts. Click a head to choose it."
)
LOGIT = say("Amount added to the logit")
_COLUMNS = (say("Part", about="of a sum"), LOGIT)
_ROW = 34  # pixels
_MOST_PRECISE = 6  # columns whose numbers have room for two digits on a phone
_MOST_WRITTEN = 14  # columns whose numbers do not touch
_LESS = str(theme.SIGNED_SCALE[2][1])


@dataclass(frozen=True)
class Bar:
    """One part, or several together."""

    name: str  # what it is
    short: str  # the same on the axis; a head as "layer.head"
    value: float  # what it adds
    place: int | None = None  # what a click on it gives; None: it cannot be clicked
    chosen: bool = False  # whether it is the part that is looked at


def contribution_map_spec(
    values: np.ndarray,
    *,
    rows: Sequence[str],
    columns: Sequence[tuple[str, str]],
    names: Sequence[Sequence[str]],
    title: str,
    chosen: tuple[int, int] | None = None,
) -> Spec:
    """Draw what each part adds [row, column], the first row on top; NaN where there is no part.

    `columns` are the headings, on two lines; `names` has the name of each part [row][column]; `chosen`, row and
    column, is framed. A click's index is (row, column).
    """
    parts = np.asarray(values, np.float64)
    if parts.shape != (len(rows), len(columns)) or [len(columns)] * len(rows) != [*map(len, names)]:
        raise ValueError(f"{parts.shape} numbers for {len(rows)} rows and {len(columns)} columns.")
    layout = base_layout(title, "", "")
    layout["xaxis"] |= {"range": [-0.5, len(columns) - 0.5], "side": "top", "fixedrange": True, "showgrid": False}
    layout["xaxis"] |= {"tickvals": list(range(len(columns))), "tickangle": 0, "ticks": "", "tickfont": {"size": 12}}
    layout["xaxis"]["ticktext"] = [joined("<br>", map(literal, column)) for column in columns]
    along(layout, rows, axis="yaxis", revised=False)
    layout["yaxis"] |= {"fixedrange": True}
    layout["margin"] |= {"t": 80}
    layout["height"] = int(np.clip(120 + _ROW * len(rows), 220, 900))
    cells = [(row, column) for row, column in np.ndindex(parts.shape) if np.isfinite(parts[row, column])]
    table(layout, _COLUMNS, [[names[row][column], float(parts[row, column])] for row, column in cells])
    if not cells:
        return {"data": [], "layout": layout}
    most = float(np.abs(np.nan_to_num(parts)).max()) or 1.0
    texts = [
        [on_lines(bold(name), with_number(literal(LOGIT), f"{part:+.4g}")) for name, part in zip(*row, strict=True)]
        for row in zip(names, parts, strict=True)
    ]
    if len(columns) <= _MOST_WRITTEN:
        digits = "+.2f" if len(columns) <= _MOST_PRECISE else "+.1f"
        layout["annotations"] = written(parts, parts / most, [digits] * len(columns))
    if chosen is not None:
        row, column = chosen
        layout["shapes"] = [frame((column - 0.48, column + 0.48), (row - 0.47, row + 0.47), width=2.5)]
    return {"data": [signed_cells(parts / most, texts)], "layout": layout}


def contribution_bars_spec(bars: Sequence[Bar], *, title: str, every: Sequence[Bar] = ()) -> Spec:
    """Draw parts as horizontal bars, the first on top; the last sums up all others. A click returns its `place`.

    `every` has all parts, for the chart's table; if empty, the table has those that are drawn.
    """
    layout = lying(title, LOGIT, "", [bar.short for bar in bars])
    values = np.array([bar.value for bar in bars], np.float64)
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    room = 0.3 * ((high - low) or 1.0)
    layout["xaxis"] |= {"range": [low - room, high + room], "nticks": 6, "fixedrange": True}
    layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR}
    numbers = values.tolist()
    layout["annotations"] = at_ends(numbers, (literal(number(value, "+.3f")) for value in numbers), signed=True)
    table(layout, _COLUMNS, [[bar.name, float(bar.value)] for bar in every or bars])
    shown = lying_bars(values, [theme.NEUTRAL_COLOR if value >= 0 else _LESS for value in numbers])
    shown["customdata"] = [-1 if bar.place is None else bar.place for bar in bars]
    shown["marker"]["line"] = {"color": theme.MARK_COLOR, "width": [2.5 if bar.chosen else 0.0 for bar in bars]}
    shown["hovertext"] = [on_lines(bold(bar.name), with_number(literal(LOGIT), f"{bar.value:+.4g}")) for bar in bars]
    return {"data": [shown] if bars else [], "layout": layout}
