"""The general chart of one or more series over the same places: lines, points or bars, which hover names."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glassformer.charts.grammar import Kind, along, edge, finite, layer, legend, table_of
from glassformer.charts.hover import hover, with_number
from glassformer.charts.marks import Axis
from glassformer.charts.theme import Spec, base_layout, literal, subtitle
from transformer.i18n import joined, say

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
