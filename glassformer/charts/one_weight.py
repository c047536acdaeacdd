"""One weight step by step: a query's and a key's vector, and a row over the keys.

Numbers on hover have six significant digits, enough to check with a calculator.
"""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import (
    HATCHED,
    SIDES,
    UNSEEN,
    along,
    cells,
    drawable,
    finite,
    frame,
    layer,
    numbered,
    one_side,
    table,
)
from glassformer.charts.hover import hover, italic, on_lines, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, capitalised, colour_bar, literal
from transformer.i18n import say

HEIGHT = 260
NUMBER = ".6~g"
"""How hover writes a number: six significant digits."""
_MOST_GAPPED = 40  # dimensions; of more, a gap between cells would eat the cells


def query_times_key_spec(q: np.ndarray, k: np.ndarray, *, title: str, query: str, key: str) -> Spec:
    """Draw a query's and a key's vector [d_head] as two strips on one scale, and their products below."""
    if q.shape != k.shape or q.ndim != 1:
        raise ValueError(f"q is {q.shape} and k is {k.shape}: give two vectors of one length.")
    layout = base_layout(title, say("Dimension of the head"), "") | {"height": HEIGHT, "bargap": 0.15}
    layout["xaxis"] |= {"range": [-0.5, len(q) - 0.5], "tickformat": "d", "showgrid": False, "anchor": "y2"}
    layout["yaxis"] |= {"domain": [0.56, 1], "tickvals": [0, 1], "ticktext": ["q", "k"], "range": [1.5, -0.5]}
    layout["yaxis"] |= {"showgrid": False, "fixedrange": True}
    layout["yaxis2"] = {"domain": [0, 0.46], "title": {"text": "q × k"}, "automargin": True, "nticks": 4}
    layout["yaxis2"] |= {"zeroline": True}
    rows = [say("q of {query}", query=literal(query)), say("k of {key}", key=literal(key))]
    columns = [say("dimension {place}", place=place) for place in range(len(q))]
    layout["meta"] = {"cells": {"rows": rows, "columns": columns}}
    products = q * k
    lines = zip(q.tolist(), k.tolist(), products.tolist(), strict=True)
    table(layout, [say("dimension"), "q", "k", "q × k"], [[i, *map(finite, line)] for i, line in enumerate(lines)])
    template = hover("%{customdata[0]}", with_number("%{customdata[1]}", f"%{{z:{NUMBER}}}"))
    both, gap = np.stack((q, k)), 1 if len(q) <= _MOST_GAPPED else 0
    ends, scale = (-one_side(both), one_side(both)), colour_bar() | {"y": 0.78, "len": 0.5}
    strips = cells(drawable(both), ends, theme.SIGNED_SCALE, template, bar=scale, gaps=(gap, 1))
    strips |= {"name": say("q and k"), "hoverongaps": False}
    shades = [theme.SIGNED_SCALE[1][1] if value < 0 else theme.NEUTRAL_COLOR for value in products]
    says = hover(say("dimension {place}", place="%{x}"), with_number("q × k", f"%{{y:{NUMBER}}}"))
    look = {"yaxis": "y2", "marker": {"color": shades}}
    bars = layer("bar", np.arange(len(q)), drawable(products), look, name="q × k", says=says)
    return {"data": [strips, bars], "layout": layout}


def key_row_spec(
    values: np.ndarray,
    keys: Sequence[str],
    *,
    title: str,
    value_name: str,
    chosen: int,
    side: Colour = "source",
    key_axis: str = say("Key"),
    before: tuple[str, np.ndarray] | None = None,
    closed: Sequence[str] | None = None,
    limits: tuple[float, float] | None = None,
) -> Spec:
    """Draw one number for each key [key], in sentence order, the chosen key framed; closed keys are hatched.

    `before` is the name and numbers [key] of pale bars behind these; `closed` says why a key is closed, "" if it is
    open. `limits` are the ends of the axis; None fits them to the numbers and 0. A click anywhere in a key's column
    returns its place.
    """
    reasons = [""] * len(keys) if closed is None else list(closed)
    series = [] if before is None else [(before[0], np.asarray(before[1], dtype=np.float64))]
    series.append((value_name, np.asarray(values, dtype=np.float64)))
    if any(row.shape != (len(keys),) for _, row in series) or len(reasons) != len(keys):
        sizes = ", ".join(str(len(row)) for _, row in series)
        raise ValueError(f"{sizes} numbers and {len(reasons)} reasons for {len(keys)} keys: give one each.")
    layout = base_layout(title, key_axis, capitalised(value_name)) | {"barmode": "overlay", "height": HEIGHT}
    along(layout, keys)
    labels = layout["meta"]["ticks"]["xaxis"]
    labels["labels"] = [f"<b>{one}</b>" if place == chosen else one for place, one in enumerate(labels["labels"])]
    layout["yaxis"] |= {"nticks": 5, "zeroline": True, "fixedrange": True}
    if not len(keys):
        return {"data": [], "layout": layout}
    is_open = np.array([not reason for reason in reasons])
    low, high = _limits([row[is_open] for _, row in series]) if limits is None else limits
    layout["yaxis"]["range"] = [low, high]
    rows, said = [], []
    for place, (key, named, reason) in enumerate(zip(keys, numbered(keys), reasons, strict=True)):
        rows.append([place + 1, key, *(None if reason else finite(row[place]) for _, row in series), reason])
        numbers = [with_number(literal(name), f"{row[place]:.6g}") for name, row in series]
        said.append(on_lines(named, *([italic(reason)] if reason else numbers)))
    table(layout, [say("number"), key_axis, *(name for name, _ in series), say("note")], rows)
    pale, strong = SIDES[side] if side != "neutral" else (theme.SCALES["neutral"][1][1], theme.NEUTRAL_COLOR)
    styles = [(strong, 0.8)] if before is None else [(pale, 0.84), (strong, 0.44)]
    places, data = np.arange(len(keys)), []
    for (name, row), (colour, width) in zip(series, styles, strict=True):
        look = {"width": width, "marker": {"color": colour}}
        data.append(layer("bar", places, np.where(is_open, drawable(row), np.nan), look, name=literal(name)))
    column = {"base": low, "width": 1}
    if not is_open.all():
        closed = places[~is_open]
        data.append(layer("bar", closed, np.full(len(closed), high - low), column | {"marker": HATCHED}))
    # Columns from bottom to top that nobody sees: a weight of 0.001 is too low a bar to be pointed at.
    tops = np.full(len(keys), high - low)
    data.append(layer("bar", places, tops, column | UNSEEN, texts=said, clicks=range(len(keys))))
    layout["shapes"] = [frame((chosen - 0.45, chosen + 0.45), (low, high), width=1.5)]
    return {"data": data, "layout": layout}


def _limits(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """From the least to the largest number, 0 among them, with a little room."""
    finite = np.concatenate([part[np.isfinite(part)] for part in parts])
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    room = 0.06 * (high - low) or 1.0
    return low - room if low < 0 else 0.0, high + room if high > 0 else 0.0 if low < 0 else 1.0
