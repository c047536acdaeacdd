"""The general charts: maps and bars whose hover, table and alternative text follow from their axes and numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, along, at_ends, finite, layer, lying, lying_bars, numbered, table_of
from glassformer.charts.heatmap import heatmap_spec
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Colour, base_layout, capitalised, literal, shortened
from transformer.i18n import say


@dataclass(frozen=True)
class Axis:
    """Places with names."""

    title: str
    labels: Sequence[str]
    side: Colour = "neutral"
    clicks: Sequence[int] | None = None  # what a click on each means; its place if not given
    counted: bool = True  # whether hover says the place before the name


@dataclass(frozen=True)
class Numbers:
    """A number for each place."""

    name: str
    values: np.ndarray
    form: str = ".4g"  # how hover writes one


def heat(title: str, rows: Axis, columns: Axis, what: Numbers, **look: Any) -> dict[str, Any]:
    """The figure and the alternative text of a map [row, column]; `look` as for `heatmap_spec`."""
    spec = heatmap_spec(
        what.values,
        queries=rows.labels,
        keys=columns.labels,
        title=title,
        query_axis=rows.title,
        key_axis=columns.title,
        value_name=what.name,
        rows_sum_to_one=False,
        **{"allowed": None} | look,
    )
    for name, axis in (("rows", rows), ("columns", columns)):
        if not axis.counted:
            spec["layout"]["meta"]["cells"][name] = [bold(label) for label in axis.labels]
    alt = say(
        "{title}. {n} rows ({rows}) and {m} columns ({columns}); {value}: {low:.3g} to {high:.3g}.", title=title,
        n=len(rows.labels), rows=rows.title, m=len(columns.labels), columns=columns.title, value=what.name,
        low=min(_there(what.values), default=0.0), high=max(_there(what.values), default=0.0),
    )  # fmt: skip
    return {"spec": spec, "alt": alt}


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

    With `ends`, which writes what stands at a bar's end, the bars lie below each other. `signed` colours go by the
    sign, and else the `chosen` bar stands out. `axis` names the axis of numbers, if not as they are. Raises ValueError
    if there is not one number for each place.
    """
    for one in (what, *also):
        if np.shape(one.values) != (len(places.labels),):
            raise ValueError(f"{np.shape(one.values)} numbers for {len(places.labels)} places: give one for each.")
    values = np.asarray(what.values, np.float32)
    clicks = list(range(len(values)) if places.clicks is None else places.clicks)
    pale, full = SIDES[places.side]
    strong = values >= 0 if signed else [click == chosen for click in clicks]
    names = numbered(places.labels) if places.counted else [bold(label) for label in places.labels]
    series, axis = (what, *also), axis or capitalised(what.name)
    each = zip(
        *([with_number(literal(one.name), format(float(value), one.form)) for value in one.values] for one in series),
        strict=True,
    )
    look = {
        "marker": {"color": [full if one else pale for one in strong]},
        "hovertext": [on_lines(name, *lines) for name, lines in zip(names, each, strict=True)],
        "customdata": clicks,
    }
    ends_of_scale = [0.0, *_there(values)]
    low, high = min(ends_of_scale), max(ends_of_scale) or 1.0
    if ends:
        layout = lying(title, axis, places.title, [shortened(label) for label in places.labels])
        side = max(-low, high)
        limits = [-1.75 * side, 1.75 * side] if signed else [1.05 * low, 1.42 * high]
        layout["xaxis"] |= {"range": limits, "nticks": 6, "fixedrange": True}
        layout["xaxis"] |= {"zeroline": True, "zerolinecolor": theme.GUIDE_COLOR} if signed else {}
        tips = values if signed else np.maximum(values, 0)
        layout["annotations"] = at_ends(map(float, tips), map(ends, range(len(values))), signed=signed)
        drawn = lying_bars(values, ()) | look
    else:
        layout = base_layout(title, places.title, axis) | {"height": 400, "bargap": 0.25, "barmode": "overlay"}
        along(layout, places.labels)
        layout["yaxis"] |= {"range": [1.1 * low, 1.08 * high], "nticks": 6, "fixedrange": True}
        drawn = layer("bar", np.arange(len(values), dtype=np.int32), values, name=literal(what.name), texts=()) | look
    table_of(
        layout,
        (places.title, places.labels),
        *((one.name, map(finite if one.values.dtype.kind == "f" else int, one.values)) for one in series),
    )
    first = int(np.argmax(np.abs(np.nan_to_num(values)))) if len(values) else 0
    alt = say("{title}: no bars.", title=title) if not len(values) else say(
        "{title}: {n} bars ({places}). The largest is {first}: {value} {most}.", title=title, n=len(values),
        places=places.title, first=places.labels[first], value=what.name,
        most=format(float(values[first]), what.form),
    )  # fmt: skip
    return {"spec": {"data": [drawn] if len(values) else [], "layout": layout}, "alt": alt}


def _there(values: np.ndarray) -> list[float]:
    found = np.asarray(values, np.float64)
    return [*map(float, found[np.isfinite(found)])]
