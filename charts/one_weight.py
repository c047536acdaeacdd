"""How one weight came to be: a query's and a key's vector, a row over the keys, and the heads' lengths.

Vectors of whole tokens are in `signed`. Numbers on hover have six significant digits, enough to go on with a
calculator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, italic, on_lines, with_number
from charts.signed import HEIGHT, NUMBER, drawable, frame, signed_map
from charts.theme import (
    MARK_COLOR,
    MASK_COLOR,
    MASK_LINE,
    NEUTRAL_COLOR,
    SIGNED_SCALE,
    SOURCE_COLOR,
    SOURCE_PALE,
    TARGET_COLOR,
    TARGET_PALE,
    Colour,
    Spec,
    as_figure,
    base_layout,
    capitalised,
    literal,
    ticks,
)
from words import say

LENGTH = say("length")
_NEGATIVE_COLOR = SIGNED_SCALE[1][1]
_NEUTRAL_PALE = "#D0CBE0"  # of the neutral scale
_SIDES: dict[Colour, tuple[str, str]] = {
    "source": (SOURCE_COLOR, SOURCE_PALE),
    "target": (TARGET_COLOR, TARGET_PALE),
    "neutral": (NEUTRAL_COLOR, _NEUTRAL_PALE),
}


def query_times_key_spec(q: np.ndarray, k: np.ndarray, *, title: str, query: str, key: str) -> Spec:
    """Draw a query's and a key's vector as two strips on one scale, and their products below.

    Args:
        q: `[d_head]`.
        k: `[d_head]`.
        title: What the chart shows.
        query: The query's label, shown on hover.
        key: The key's label, shown on hover.

    Raises:
        ValueError: The vectors differ in length.
    """
    if q.shape != k.shape or q.ndim != 1:
        raise ValueError(f"q is {q.shape} and k is {k.shape}: give two vectors of one length.")
    layout = base_layout(title, say("Dimension of the head"), "")
    columns = [say("dimension {place}", place=place) for place in range(len(q))]
    layout["xaxis"] |= {"range": [-0.5, len(q) - 0.5], "tickformat": "d", "showgrid": False, "anchor": "y2"}
    layout["yaxis"] |= {"domain": [0.56, 1], "tickvals": [0, 1], "ticktext": ["q", "k"], "range": [1.5, -0.5]}
    layout["yaxis"] |= {"showgrid": False, "fixedrange": True}
    layout["yaxis2"] = {"domain": [0, 0.46], "title": {"text": "q × k"}, "automargin": True, "nticks": 4}
    layout["yaxis2"] |= {"zeroline": True}
    rows = [say("q of {query}", query=literal(query)), say("k of {key}", key=literal(key))]
    layout["meta"] = {"cells": {"rows": rows, "columns": columns}}
    layout["meta"]["table"] = _products_table(q, k)
    layout |= {"height": HEIGHT, "bargap": 0.15}
    template = hover("%{customdata[0]}", with_number("%{customdata[1]}", f"%{{z:{NUMBER}}}"))
    strips = signed_map(np.stack((q, k)), name=say("q and k"), template=template, bar=(0.78, 0.5))
    products = q * k
    bars = {
        "type": "bar",
        "name": "q × k",
        "x": np.arange(len(q)),
        "y": drawable(products),
        "yaxis": "y2",
        "hovertemplate": hover(say("dimension {place}", place="%{x}"), with_number("q × k", f"%{{y:{NUMBER}}}")),
        "marker": {"color": [_NEGATIVE_COLOR if value < 0 else NEUTRAL_COLOR for value in products]},
    }
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
    """Draw one number for each key, in sentence order, the chosen key framed.

    Args:
        values: `[key]`; what stands at a closed key is not looked at.
        keys: A label for each key; equal labels stay apart.
        title: What the chart shows.
        value_name: What a number is.
        chosen: The key that is looked at, from 0.
        side: Whose pieces the keys are.
        key_axis: What the keys are.
        before: Name and numbers `[key]` that stand pale behind these, on the same axis.
        closed: Why a key is closed, "" if it is open; closed keys are hatched. None: all are open.
        limits: Ends of the axis; None takes those of the numbers and 0.

    Returns:
        The figure; a click on a key, from the top of the chart to its bottom, returns its place as `customdata`.

    Raises:
        ValueError: There is not one number for each key.
    """
    reasons = [""] * len(keys) if closed is None else list(closed)
    series = [] if before is None else [(before[0], np.asarray(before[1], dtype=np.float64))]
    series.append((value_name, np.asarray(values, dtype=np.float64)))
    if any(row.shape != (len(keys),) for _, row in series) or len(reasons) != len(keys):
        sizes = ", ".join(str(len(row)) for _, row in series)
        raise ValueError(f"{sizes} numbers and {len(reasons)} reasons for {len(keys)} keys: give one each.")
    layout = _key_layout(title, keys, key_axis, value_name, chosen)
    if not len(keys):
        return {"data": [], "layout": layout}
    is_open = np.array([not reason for reason in reasons])
    low, high = _limits([row[is_open] for _, row in series]) if limits is None else limits
    layout["yaxis"]["range"] = [low, high]
    layout["meta"]["table"] = _key_table(key_axis, keys, series, reasons)
    strong, pale = _SIDES[side]
    styles = [(strong, 0.8)] if before is None else [(pale, 0.84), (strong, 0.44)]
    data = [
        _bars(name, np.where(is_open, drawable(row), np.nan), colour, width)
        for (name, row), (colour, width) in zip(series, styles, strict=True)
    ]
    if not is_open.all():
        data.append(_hatched(np.flatnonzero(~is_open), low, high))
    data.append(_columns(_told_on_hover(keys, series, reasons), low, high))
    layout["shapes"] = [frame(chosen - 0.45, chosen + 0.45, low, high)]
    return {"data": data, "layout": layout}


def head_norms_spec(norms: np.ndarray, *, title: str, chosen: int) -> Spec:
    """Draw how long each head's share is.

    Args:
        norms: `[head]`, 0 or more.
        title: What the chart shows.
        chosen: The head that is looked at, from 0.

    Returns:
        The figure; a click on a bar returns its head, from 0, as `customdata`.
    """
    layout = base_layout(title, say("Head"), say("Length ‖head · W_O‖"))
    names = [str(head) for head in range(1, len(norms) + 1)]
    axis = ticks(names, title=say("Head"))
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(norms) - 0.5]}
    low, high = _limits([norms])
    layout["yaxis"] |= {"range": [low, high], "nticks": 5, "fixedrange": True}
    layout |= {"barmode": "overlay", "height": HEIGHT, "meta": {"ticks": {"xaxis": axis["spec"]}}}
    if not len(norms):
        return {"data": [], "layout": layout}
    total = float(np.sum(norms))
    shares = [norm / total if total > 0 else 0.0 for norm in norms.tolist()]
    layout["meta"]["table"] = {
        "columns": [say("head"), LENGTH, say("share of all lengths")],
        "rows": [
            [i + 1, _told(norm), _told(share)] for i, (norm, share) in enumerate(zip(norms, shares, strict=True))
        ],
    }
    bars = _bars(LENGTH, drawable(norms), NEUTRAL_COLOR, 0.7)
    bars["marker"] = {
        "color": [NEUTRAL_COLOR if head == chosen else _NEUTRAL_PALE for head in range(len(norms))],
        "line": {"color": MARK_COLOR, "width": [1.5 if head == chosen else 0 for head in range(len(norms))]},
    }
    said = [
        on_lines(
            say("Head {head}", head=name),
            with_number(LENGTH, f"{norm:.6g}"),
            literal(say("{share:.1%} of all lengths", share=share)),
        )
        for name, norm, share in zip(names, norms.tolist(), shares, strict=True)
    ]
    return {"data": [bars, _columns(said, low, high)], "layout": layout}


query_times_key = as_figure(query_times_key_spec)
key_row = as_figure(key_row_spec)
head_norms = as_figure(head_norms_spec)


def _products_table(q: np.ndarray, k: np.ndarray) -> Spec:
    """What the chart draws, for a download."""
    lines = zip(q.tolist(), k.tolist(), (q * k).tolist(), strict=True)
    rows = [[place, *map(_told, line)] for place, line in enumerate(lines)]
    return {"columns": [say("dimension"), "q", "k", "q × k"], "rows": rows}


def _key_table(
    key_axis: str, keys: Sequence[str], series: Sequence[tuple[str, np.ndarray]], reasons: Sequence[str]
) -> Spec:
    rows = [
        [place + 1, key, *(None if reason else _told(row[place]) for _, row in series), reason]
        for place, (key, reason) in enumerate(zip(keys, reasons, strict=True))
    ]
    return {"columns": [say("number"), key_axis, *(name for name, _ in series), say("note")], "rows": rows}


def _told(value: float) -> float | None:
    """A number that JSON can say."""
    return float(value) if np.isfinite(value) else None


def _limits(parts: Sequence[np.ndarray]) -> tuple[float, float]:
    """From the least to the largest number, 0 among them, with a little room."""
    finite = np.concatenate([part[np.isfinite(part)] for part in parts])
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    room = 0.06 * (high - low) or 1.0
    return low - room if low < 0 else 0.0, high + room if high > 0 else 0.0 if low < 0 else 1.0


def _key_layout(title: str, keys: Sequence[str], key_axis: str, value_name: str, chosen: int) -> Spec:
    layout = base_layout(title, key_axis, capitalised(value_name))
    axis = ticks(keys, title=key_axis)
    axis["spec"]["labels"] = [
        f"<b>{label}</b>" if place == chosen else label for place, label in enumerate(axis["spec"]["labels"])
    ]
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(keys) - 0.5], "uirevision": "\n".join(keys)}
    layout["yaxis"] |= {"nticks": 5, "zeroline": True, "fixedrange": True}
    layout |= {"barmode": "overlay", "height": HEIGHT, "meta": {"ticks": {"xaxis": axis["spec"]}}}
    return layout


def _bars(name: str, values: np.ndarray, colour: str, width: float) -> Spec:
    return {
        "type": "bar",
        "name": literal(name),
        "x": np.arange(len(values)),
        "y": values,
        "width": width,
        "hoverinfo": "skip",
        "marker": {"color": colour},
    }


def _hatched(places: np.ndarray, low: float, high: float) -> Spec:
    """Closed keys from bottom to top."""
    pattern = {"shape": "/", "fgcolor": MASK_LINE, "bgcolor": MASK_COLOR, "size": 7, "solidity": 0.14}
    return {
        "type": "bar",
        "x": places,
        "y": np.full(len(places), high - low),
        "base": low,
        "width": 1,
        "hoverinfo": "skip",
        "marker": {"color": MASK_COLOR, "line": {"width": 0}, "pattern": pattern},
    }


def _told_on_hover(
    keys: Sequence[str], series: Sequence[tuple[str, np.ndarray]], reasons: Sequence[str]
) -> list[str]:
    said = []
    for place, (key, reason) in enumerate(zip(keys, reasons, strict=True)):
        numbers = [with_number(literal(name), f"{row[place]:.6g}") for name, row in series]
        said.append(on_lines(f"{place + 1}: {bold(key)}", *([italic(reason)] if reason else numbers)))
    return said


def _columns(said: Sequence[str], low: float, high: float) -> Spec:
    """Columns from bottom to top that nobody sees: a weight of 0.001 is too low a bar to be pointed at."""
    return {
        "type": "bar",
        "x": np.arange(len(said)),
        "y": np.full(len(said), high - low),
        "base": low,
        "width": 1,
        "customdata": list(range(len(said))),
        "hovertext": list(said),
        "hovertemplate": hover("%{hovertext}"),
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 0}},
    }
