"""Helper functions of all charts: named axes, legend, layers of marks, map cells, hatching, lines, notes, table.

A chart is a layout (`theme.base_layout`) whose axes are named by pieces (`along`) or by rows of text (`listed`), with
layers on it: `cells` of a map, and `layer` for curves, points and bars. A layer is plain data, so one chart can add
what it needs: `layer("lines", x, y, says=...) | stroke(colour, 2)`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.hover import bold, hover
from glassformer.charts.theme import Colour, Spec, base_layout, literal, ticks
from transformer.i18n import joined

Kind = Literal["bar", "lying", "markers", "lines", "lines+markers", "markers+text", "text"]

SIDES: dict[Colour, tuple[str, str]] = {
    "source": (theme.SOURCE_PALE, theme.SOURCE_COLOR),
    "target": (theme.TARGET_PALE, theme.TARGET_COLOR),
    "neutral": (theme.GUIDE_COLOR, theme.NEUTRAL_COLOR),
}
"""A pale and a full shade of each side."""
PALE_FROM = 0.6
"""Share of a scale from which a cell needs pale text: there both are about equally readable, in both themes."""
PALE = theme.SCALES["neutral"][0][1]
PLACES: Spec = {"x0": 0, "dx": 1, "y0": 0, "dy": 1}
"""Cells on integer places."""
GREY = [[0, theme.MASK_COLOR], [1, theme.MASK_COLOR]]
UNSEEN: Spec = {"marker": {"color": "rgba(0,0,0,0)", "line": {"width": 0}}}
"""Bars that only take hover and clicks."""
NO_DATA: Spec = {"marker": {"color": "rgba(0,0,0,0)"}}
"""A line that is not saved as data."""
_STRIPES: Spec = {"shape": "/", "fgcolor": theme.MASK_LINE, "size": 7, "solidity": 0.14}
_GROUND: Spec = {"color": theme.MASK_COLOR, "line": {"width": 0}}
HATCHED: Spec = _GROUND | {"pattern": _STRIPES | {"bgcolor": theme.MASK_COLOR}}

# ------------------------------------------------------------------------------------------------ axes and table


def along(layout: Spec, pieces: Sequence[str], *, axis: str = "xaxis", room: float = 0.5, revised: bool = True) -> None:
    """Name the places of an axis by pieces, the first at the left or on top; equal ones stay separate.

    `room` is the space between the first or last place and the edge; `revised` ends a zoom when the pieces change.
    """
    labels = ticks(pieces, title=title_of(layout, axis))
    ends = [-room, len(pieces) - (1 - room)]
    layout[axis] = {**labels["axis"], "range": ends if axis == "xaxis" else ends[::-1]}
    layout[axis] |= {"uirevision": "\n".join(pieces)} if revised else {}
    layout.setdefault("meta", {}).setdefault("ticks", {})[axis] = labels["spec"]


def title_of(layout: Spec, axis: str) -> str:
    """An axis's title, escaped; "" for an axis that the layout does not have yet."""
    return layout[axis]["title"]["text"] if axis in layout else ""


def listed(layout: Spec, labels: Iterable[str]) -> None:
    """Name rows from top to bottom by already escaped texts."""
    names = list(labels)
    layout["yaxis"] |= {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
    layout["yaxis"] |= {"range": [len(names) - 0.5, -0.5], "showgrid": False, "fixedrange": True}


def legend(layout: Spec, top: int) -> None:
    """Name the layers in a legend between the title and the plot, which is given this many pixels."""
    layout |= {"showlegend": True, "legend": dict(theme.LEGEND)}
    layout["margin"]["t"] = top


def table(layout: Spec, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """The table that is saved of a chart; returns its rows."""
    cells_of_rows = [list(row) for row in rows]
    layout.setdefault("meta", {})["table"] = {"columns": list(columns), "rows": cells_of_rows}
    return cells_of_rows


def table_of(layout: Spec, *columns: tuple[str, Iterable[Any]]) -> list[list[Any]]:
    """The same, column by column."""
    return table(layout, [name for name, _ in columns], zip(*(values for _, values in columns), strict=True))


def finite(value: float) -> float | None:
    """A number that JSON can hold."""
    return float(value) if np.isfinite(value) else None


def numbered(pieces: Iterable[str]) -> list[str]:
    """Each piece on hover, with its place, counted from 1 as the stepper counts steps."""
    return [joined(": ", [str(place), bold(piece)]) for place, piece in enumerate(pieces, start=1)]


# ------------------------------------------------------------------------------------------------ layers


def layer(
    kind: Kind,
    x: Sequence[Any] | np.ndarray,
    y: Sequence[Any] | np.ndarray,
    look: Spec | None = None,
    *,
    name: str | None = None,
    says: str | None = None,
    texts: Iterable[Any] | None = None,
    clicks: Iterable[Any] | None = None,
) -> Spec:
    """A layer of marks; kind "lying" is horizontal bars, and `look` has further attributes, such as a `stroke`.

    `name` is the name in the legend and the heading of the saved column, already escaped. Hover shows the template
    `says`, else the `texts` of the marks, else nothing; `clicks` has what a click on each mark returns.
    """
    found: Spec = {"type": "bar"} if kind in ("bar", "lying") else {"type": "scatter", "mode": kind}
    found |= {"orientation": "h"} if kind == "lying" else {}
    found |= {"x": x, "y": y} | (look or {})
    found |= {} if name is None else {"name": name}
    found |= {} if clicks is None else {"customdata": list(clicks)}
    found |= {} if texts is None else {"hovertext": list(texts)}
    if says is None and texts is None:
        return found | {"hoverinfo": "skip"}
    return found | {"hovertemplate": hover("%{hovertext}") if says is None else says}


def lying(title: str, x_title: str, y_title: str, labels: Sequence[str]) -> Spec:
    """The layout of horizontal bars, one per row."""
    layout = base_layout(title, x_title, y_title) | {"bargap": 0.25, "barmode": "overlay"}
    listed(layout, map(literal, labels))
    return layout | {"height": int(np.clip(116 + 24 * len(labels), 200, 560))}


def lying_bars(values: Sequence[float] | np.ndarray, shades: Sequence[str]) -> Spec:
    """The bars themselves, each with a colour; the caller adds the hover text."""
    bars = layer("lying", np.asarray(values, np.float32), np.arange(len(values), dtype=np.int32), texts=())
    return bars | {"marker": {"color": list(shades)}}


def whole_rows(ids: Sequence[int], texts: Sequence[str], *, width: float = 1.0) -> Spec:
    """Invisible rows from edge to edge, with texts and clicks, because a bar of 0.1 % is too thin to hover over."""
    x = np.full(len(ids), width, dtype=np.float32)
    return layer("lying", x, np.arange(len(ids)), UNSEEN | {"showlegend": False}, texts=texts, clicks=ids)


def stroke(colour: str, width: float, dash: str = "", *, size: float | None = None, symbol: str = "") -> Spec:
    """How a curve looks, and its marks if they have a size."""
    line = {"color": colour, "width": width} | ({"dash": dash} if dash else {})
    if size is None:
        return {"line": line}
    return {"line": line, "marker": {"color": colour, "size": size} | ({"symbol": symbol} if symbol else {})}


DOTTED = stroke(theme.GUIDE_COLOR, 1.5, "dot") | NO_DATA
"""A line to compare with."""


def edge(width: Any, colour: Any = theme.MARK_COLOR) -> Spec:
    """The line around marks: one width and colour, or one for each."""
    return {"color": colour, "width": width}


def cells(
    z: np.ndarray,
    ends: tuple[float, float],
    colours: list[list[Any]],
    says: str,
    *,
    bar: Spec | None = None,
    gaps: tuple[int, int] | None = None,
    named: bool = True,
) -> Spec:
    """The cells [row, column] of a map, coloured from one end of the scale to the other; NaN is left out.

    The template `says` has the row and the column as `%{customdata[0]}` and `[1]`, if `named` by `layout.meta.cells`.
    `gaps` are pixels between columns and between rows; without `bar` there is no scale next to the map.
    """
    found: Spec = {"type": "heatmap", "z": z, "zmin": ends[0], "zmax": ends[1], "colorscale": colours, **PLACES}
    found |= {"hovertemplate": says}
    found |= {"showscale": False} if bar is None else {"colorbar": bar}
    found |= {} if gaps is None else {"xgap": gaps[0], "ygap": gaps[1]}
    return found | ({"meta": theme.CELLS} if named else {})


def hatching(x: np.ndarray, y: np.ndarray) -> Spec:
    """Hatch an outline; it takes no hover and no click, so those reach the marks under it."""
    look = {"line": {"width": 0}, "fill": "toself", "fillpattern": _STRIPES | {"bgcolor": "rgba(0,0,0,0)"}}
    return layer("lines", x, y, look)


def drawable(values: np.ndarray) -> np.ndarray:
    """The numbers, with NaN, which is not drawn, for those that are not finite."""
    return np.where(np.isfinite(values), values, np.nan)


def one_side(values: Iterable[Any]) -> float:
    """The largest absolute value, without what is not finite; 1 if that is 0."""
    numbers = np.abs(np.asarray(values))
    return float(numbers[np.isfinite(numbers)].max(initial=0)) or 1.0


# ------------------------------------------------------------------------------------------------ lines and notes


def frame(x: tuple[float, float], y: tuple[float, float], *, width: float = 2, dash: str = "", yref: str = "") -> Spec:
    """A line around a rectangle."""
    line = {"color": theme.MARK_COLOR, "width": width} | ({"dash": dash} if dash else {})
    found = {"type": "rect", "x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "line": line}
    return found | ({"yref": yref} if yref else {})


def upright(
    place: float, colour: str = theme.GUIDE_COLOR, *, width: float = 1, dash: str = "dot", below: bool = True
) -> Spec:
    """A vertical line."""
    line = {"color": colour, "width": width} | ({"dash": dash} if dash else {})
    found = {"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "y domain", "line": line}
    return found | ({"layer": "below"} if below else {})


def level(height: float, dash: str = "dot", *, colour: str = theme.GUIDE_COLOR, xref: str = "paper") -> Spec:
    """A horizontal line."""
    line = {"color": colour, "width": 1.5, "dash": dash}
    return {"type": "line", "xref": xref, "x0": 0, "x1": 1, "y0": height, "y1": height, "line": line}


def at_mean(values: np.ndarray) -> list[Spec]:
    """A line at the mean of the numbers that are there."""
    there = values[np.isfinite(values)]
    return [level(float(there.mean()))] if there.size else []


def note(x: float, y: float, text: str) -> Spec:
    """A text on the plot, already escaped."""
    return {"x": x, "y": y, "text": text, "showarrow": False}


def at_a_line(x: float, y: float, text: str, *, left: bool) -> Spec:
    """A text next to a vertical line, at a height from 0 to 1."""
    side = {"xanchor": "right", "xshift": -4} if left else {"xanchor": "left", "xshift": 4}
    return note(x, y, text) | side | {"yref": "y domain"}


def at_ends(ends: Iterable[float], texts: Iterable[str], *, signed: bool = False) -> list[Spec]:
    """A text at the end of each horizontal bar; with `signed`, on the left of bars that go left."""
    left, right = {"xanchor": "left", "xshift": 4}, {"xanchor": "right", "xshift": -4}
    return [
        note(end, place, text) | (left if end >= 0 or not signed else right)
        for place, (end, text) in enumerate(zip(ends, texts, strict=True))
    ]


def in_cells(
    values: np.ndarray, shares: np.ndarray, text: Callable[[float, int], str], *, pale_from: float = PALE_FROM
) -> list[Spec]:
    """The finite numbers [row, column] of a map in its cells, pale if the absolute share is above `pale_from`.

    `text` writes the number of a column.
    """
    return [
        note(column, row, text(value, column))
        | {"font": {"color": PALE if abs(shares[row, column]) > pale_from else theme.MARK_COLOR}}
        for (row, column), value in np.ndenumerate(values)
        if np.isfinite(value)
    ]
