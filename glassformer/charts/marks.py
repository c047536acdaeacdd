"""The general charts: maps, bars and lines; hover, table and alternative text follow from their axes and numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    SIDES,
    Kind,
    along,
    at_ends,
    edge,
    finite,
    frame,
    in_cells,
    layer,
    legend,
    lying,
    lying_bars,
    numbered,
    one_side,
    table_of,
)
from glassformer.charts.heatmap import ends_of, heatmap_spec
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, capitalised, literal, shortened, subtitle
from transformer.i18n import joined, say


@dataclass(frozen=True)
class Axis:
    """Places with names."""

    title: str
    labels: Sequence[str | int]  # numbers stand for themselves; if they count from 0, the axis has round ones
    side: Colour = "neutral"
    clicks: Sequence[int] | None = None  # what a click on each means; its place if not given
    counted: bool = True  # whether hover says the place before the name
    says: Sequence[str] = ()  # what hover says of each instead, already escaped
    short: Sequence[str] | None = None  # what the axis has in place of each label

    @property
    def names(self) -> list[str]:
        """The labels as text."""
        return [label if isinstance(label, str) else str(label) for label in self.labels]

    @property
    def on_hover(self) -> list[str]:
        """What hover says of each."""
        is_named = self.counted and not any(isinstance(label, int) for label in self.labels)
        return list(self.says) or (numbered(self.names) if is_named else [bold(name) for name in self.names])


@dataclass(frozen=True)
class Numbers:
    """A number for each place."""

    name: str
    values: np.ndarray
    form: str = ".4g"  # how hover writes one


def heat(
    title: str,
    rows: Axis,
    columns: Axis,
    what: Numbers,
    *,
    signed: bool = False,
    marked_column: int | None = None,
    gaps: tuple[int, int] | None = None,
    height: int | None = None,
    written: str = "",
    **look: Any,
) -> dict[str, Any]:
    """The figure and the alternative text of a map [row, column]; `look` as for `heatmap_spec`.

    `signed` colours have 0 in the middle of their scale. `marked_column` has a frame. `gaps` are pixels between
    columns and between rows. `written` is the form of numbers in their cells.
    """
    if signed:
        most = one_side(what.values if look.get("allowed") is None else what.values[look["allowed"]])
        look["limits"] = (-most, most)
    spec = heatmap_spec(
        what.values,
        queries=rows.names,
        keys=columns.names,
        title=title,
        query_axis=rows.title,
        key_axis=columns.title,
        value_name=what.name,
        number=what.form.replace("g", "~g"),  # Python's "g" writes no zeros at the end
        rows_sum_to_one=False,
        named=(not rows.says, not columns.says),
        **{"allowed": None} | look,
    )
    layout = spec["layout"] | ({} if height is None else {"height": height})
    layout["meta"]["cells"] |= {"rows": rows.on_hover, "columns": columns.on_hover}
    for name, axis in (("yaxis", rows), ("xaxis", columns)):
        if list(axis.labels) == list(range(len(axis.labels))):
            _count(layout, name, axis)
    if spec["data"] and marked_column is not None and 0 <= marked_column < len(columns.labels):
        layout["shapes"].append(frame((marked_column - 0.5, marked_column + 0.5), (-0.5, len(rows.labels) - 0.5)))
    for cells in spec["data"][:1]:
        cells |= {"colorscale": theme.SIGNED_SCALE} if signed else {}
        cells |= {} if gaps is None else {"xgap": gaps[0], "ygap": gaps[1]}
        if written:
            shares = (cells["z"] - cells["zmin"]) / ((cells["zmax"] - cells["zmin"]) or 1.0)
            notes = in_cells(cells["z"], shares, lambda value, _: formatted(value, written))
            layout["annotations"] = [one | {"font": one["font"] | {"size": 11}} for one in notes]
    low, high = ends_of(what.values, (0.0, 0.0))
    alt = say(
        "{title}. {n} rows ({rows}) and {m} columns ({columns}); {value}: {low:.3g} to {high:.3g}.", title=title,
        n=len(rows.labels), rows=rows.title, m=len(columns.labels), columns=columns.title, value=what.name,
        low=low, high=high,
    )  # fmt: skip
    return {"spec": spec | {"layout": layout}, "alt": alt}


def _count(layout: Spec, name: str, axis: Axis) -> None:
    """Give places that count from 0 the round numbers of any axis."""
    del layout["meta"]["ticks"][name]
    kept = {key: layout[name][key] for key in ("range", "uirevision")}
    plain = base_layout("", axis.title, axis.title)[name] | kept
    layout[name] = plain | {"tickformat": "d", "nticks": 12, "ticks": "outside", "showgrid": False}
    layout[name] |= {"dtick": 1} if len(axis.labels) <= 10 else {}


def bars(
    title: str,
    places: Axis,
    what: Numbers,
    *also: Numbers,
    chosen: int | None = None,
    signed: bool = False,
    ends: Callable[[int], str] | None = None,
    axis: str = "",
) -> dict[str, Any]:
    """The figure and the alternative text of a bar for each place; `also` has more numbers for hover and table.

    With `ends`, which writes the text at a bar's end, the bars lie below each other. `signed` colours go by the
    sign, and else the `chosen` bar stands out, if there is one. `axis` names the axis of numbers, if not as they are.
    Raises ValueError if there is not one number for each place.
    """
    for one in (what, *also):
        if np.shape(one.values) != (len(places.labels),):
            raise ValueError(f"{np.shape(one.values)} numbers for {len(places.labels)} places: give one for each.")
    values = np.asarray(what.values, np.float32)
    clicks = list(range(len(values)) if places.clicks is None else places.clicks)
    pale, full = SIDES[places.side]
    strong = values >= 0 if signed else [chosen in (None, click) for click in clicks]
    series, axis = (what, *also), axis or capitalised(what.name)
    said = [[with_number(literal(one.name), formatted(value, one.form)) for value in one.values] for one in series]
    look = {
        "marker": {"color": [full if one else pale for one in strong]},
        "hovertext": [on_lines(*lines) for lines in zip(places.on_hover, *said, strict=True)],
        "customdata": clicks,
    }
    ends_of_scale = 0.0, *ends_of(values, (0.0, 0.0))
    low, high = min(ends_of_scale), max(ends_of_scale) or 1.0
    if ends:
        layout = lying(title, axis, places.title, [shortened(label) for label in places.names])
        side = max(-low, high)
        limits = [-1.75 * side, 1.75 * side] if signed else [1.05 * low, 1.42 * high]
        layout["xaxis"] |= {"range": limits, "nticks": 6, "fixedrange": True}
        layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR} if signed else {}
        tips = values if signed else np.maximum(values, 0)
        layout["annotations"] = at_ends(map(float, tips), map(ends, range(len(values))), signed=signed)
        drawn = lying_bars(values, ()) | look
    else:
        layout = base_layout(title, places.title, axis) | {"height": 400, "bargap": 0.25, "barmode": "overlay"}
        along(layout, places.names)
        layout["yaxis"] |= {"range": [1.1 * low, 1.08 * high], "nticks": 6, "fixedrange": True}
        drawn = layer("bar", np.arange(len(values), dtype=np.int32), values, name=literal(what.name), texts=()) | look
    table_of(
        layout,
        (places.title, places.labels),
        *((one.name, map(finite if one.values.dtype.kind == "f" else int, one.values)) for one in series),
    )
    first = int(np.argmax(np.abs(np.nan_to_num(values)))) if len(values) else 0
    alt = say("{title}: no numbers.", title=title) if not len(values) else say(
        "{title}: {n} bars ({places}). The largest is {first}: {value} {most}.", title=title, n=len(values),
        places=places.title, first=places.labels[first], value=what.name,
        most=formatted(values[first], what.form),
    )  # fmt: skip
    return {"spec": {"data": [drawn] if len(values) else [], "layout": layout}, "alt": alt}


def formatted(value: float, form: str) -> str:
    """A number in a form of Python's, with the minus sign of Plotly's own numbers."""
    text = format(float(value), form)
    return f"−{text[1:]}" if text.startswith("-") else text


LOGARITHMIC: Spec = {"type": "log", "dtick": 1, "exponentformat": "power"}
_FEW = 10  # whole numbers, each with a tick
_MOST_SAID = 4  # series whose ends the alternative text says one by one
_CHOSEN = 13  # pixels of the mark that stands out
_MOST_MARKED = 64  # of a line's places; more marks would hide it, so it has none, unless they can be clicked


@dataclass(frozen=True)
class Places:
    """Places that are numbers."""

    title: str
    at: Sequence[float] | np.ndarray
    says: str  # how hover names one: a sentence with the field "%{x}"
    look: Spec = field(default_factory=dict)  # further attributes of the axis


@dataclass(frozen=True)
class Scale:
    """An axis of numbers; several share a chart if each has a `domain`, or the second is at the right."""

    title: str
    look: Spec = field(default_factory=dict)


@dataclass(frozen=True)
class Series:
    """A number for each place, NaN for a gap, and how it looks: a `stroke` or a marker, and further attributes."""

    name: str
    values: Sequence[float] | np.ndarray
    look: Spec
    kind: Kind = "lines+markers"
    number: str = "%{y:.4~g}"  # how hover writes one; "" for no hover
    at: Sequence[float] | np.ndarray | None = None  # where its numbers stand, if not at all places
    texts: Sequence[str] | None = None  # what else hover says of each, already escaped
    clicks: Sequence[int] | None = None  # what a click on each means
    chosen: int | None = None  # the place of the mark that stands out
    scale: int = 0


def lines(
    title: str,
    across: Axis | Places,
    up: Scale | Sequence[Scale],
    series: Sequence[Series],
    *,
    height: int = 400,
    top: int = 0,
    note: str = "",
    shapes: Sequence[Spec] = (),
) -> dict[str, Any]:
    """The figure and the alternative text of series, the last on top.

    `top` are the pixels above the plot in which a legend names them, 0 for none; `note` stands under the title,
    `shapes` on the plot. Raises ValueError if a series has not one number for each place.
    """
    scales = [up] if isinstance(up, Scale) else up
    layout = base_layout(title, across.title, scales[0].title) | {"height": height, "hovermode": "closest"}
    if isinstance(across, Axis):
        along(layout, across.names if across.short is None else across.short)
        places, says = np.arange(len(across.labels), dtype=np.int32), "%{hovertext}"
        heads = across.on_hover
    else:
        places, says, heads = np.asarray(across.at), across.says, None
        layout["xaxis"] |= {"showgrid": False, "tickformat": "d"} | across.look
        if len(places) and places.dtype.kind == "i" and places[-1] - places[0] <= _FEW:
            layout["xaxis"] |= {"dtick": 1}
    for place, scale in enumerate(scales, start=1):
        own = base_layout("", "", scale.title)["yaxis"] | {"nticks": 6} | scale.look
        layout["yaxis" if place == 1 else f"yaxis{place}"] = own
    if len(scales) > 1 and "overlaying" not in scales[-1].look:
        layout["xaxis"] |= {"anchor": f"y{len(scales)}"}
    if any(one.kind == "bar" for one in series):
        layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0}
    if top:
        legend(layout, top)
    subtitle(layout, [literal(note)])
    layout |= {"shapes": list(shapes)} if shapes else {}
    data = [_layer(one, places, says, heads) for one in series if len(one.values) or len(places)]
    if isinstance(across, Axis) and all(one.at is None for one in series):
        counted = (say("{rows} number", rows=across.title), range(1, len(places) + 1))
        numbers = [(one.name, map(finite, one.values)) for one in series]
        table_of(layout, *[counted] * across.counted, (across.title, across.labels), *numbers)
    return {"spec": {"data": data, "layout": layout}, "alt": _said(title, across.title, series)}


def _layer(one: Series, places: np.ndarray, says: str, heads: Sequence[str] | None) -> Spec:
    x = places if one.at is None else np.asarray(one.at)
    values = np.asarray(one.values)
    if values.shape != x.shape or len(x) != len(x if one.texts is None else one.texts):
        raise ValueError(f"{len(values)} numbers or texts of {one.name} for {len(x)} places: give one for each.")
    texts = heads if one.texts is None else one.texts
    look = {key: dict(value) if key == "marker" else value for key, value in one.look.items()}
    if one.chosen is not None:
        here = np.arange(len(x)) == one.chosen
        look["marker"] |= {"line": edge(np.where(here, 2, 0))}
        look["marker"] |= {"size": np.where(here, _CHOSEN, size)} if (size := look["marker"].get("size")) else {}
    kind = one.kind
    if kind == "lines+markers" and len(x) > _MOST_MARKED and one.clicks is None:
        kind = "lines"
    y, name = values.astype(np.float32 if values.dtype == np.float32 else np.float64), literal(one.name)
    parts = [says, *["%{hovertext}"] * (one.texts is not None and heads is None), with_number(name, one.number)]
    shown: Spec = {"says": hover(*parts), "texts": texts} if one.number else {}
    look |= {"yaxis": f"y{one.scale + 1}"} if one.scale else {}
    return layer(kind, x, y, name=name, clicks=one.clicks, **shown) | look


def _said(title: str, across: str, series: Sequence[Series]) -> str:
    """The chart in words: between which numbers each series is."""
    numbers = [(one.name, np.asarray(one.values, np.float64)) for one in series if one.number]
    there = [(name, values[np.isfinite(values)]) for name, values in numbers]
    ends = [(name, values.min(), values.max()) for name, values in there if values.size]
    if not ends:
        return say("{title}: no numbers.", title=title)
    if len(ends) > _MOST_SAID:
        ends = [(say("{n} series", n=len(ends)), min(low for _, low, _ in ends), max(high for *_, high in ends))]
    said = [say("{name}: {low:.4g} to {high:.4g}", name=name, low=low, high=high) for name, low, high in ends]
    return say("{title}. {series}. Horizontal axis: {across}.", title=title, series=joined("; ", said), across=across)
