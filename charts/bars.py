"""Bars for one step: the likeliest next pieces, and the weights over the source.

Axes start at 0 and end at the same number on every step, so that steps can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from charts.heatmap import CLOSED, WEIGHT
from charts.hover import bold, hover, italic, on_lines, with_number
from charts.theme import (
    MARK_COLOR,
    MASK_COLOR,
    MASK_LINE,
    SOURCE_COLOR,
    TARGET_COLOR,
    TARGET_PALE,
    Spec,
    as_figure,
    base_layout,
    literal,
    shortened,
    ticks,
)
from words import joined, say

PROBABILITY = say("probability")
_ENDS = (0.25, 0.5, 1.0)  # where an axis of weights may end

HOW_TO_READ_CANDIDATES = say(
    "Each bar is one piece the model could say next, and how likely it finds it; ✓ marks the one taken."
)
HOW_TO_READ_ATTENTION = say(
    "Each bar is one source piece and the share of this step's attention it gets; all bars together make 1."
)


def candidates_spec(
    pieces: Sequence[str],
    probabilities: Sequence[float],
    *,
    ids: Sequence[int],
    chosen: int | None,
    title: str = say("Likeliest next pieces"),
    ranks: Sequence[int] | None = None,
    kept: Sequence[bool] | None = None,
    how_chosen: str = say("chosen"),
) -> Spec:
    """Draw the likeliest next pieces, the first on top.

    Args:
        pieces: The candidates, likeliest first.
        probabilities: Their probabilities, 0 to 1.
        ids: Their token ids; a click on a bar returns its id as `customdata`.
        chosen: Place in `pieces` of the one that was taken; None if it is not among them or still hidden.
        title: What the chart shows.
        ranks: Their ranks counted from 1; None: in order.
        kept: Which ones sampling was left with; the others are hatched. None: all.
        how_chosen: How it was taken, on hover: "chosen", "drawn by chance", "chosen by you".

    Returns:
        The figure; `layout.height` suggests a height in pixels.

    Raises:
        ValueError: If the lists differ in length.
    """
    count = len(pieces)
    ranks = list(range(1, count + 1)) if ranks is None else ranks
    kept = [True] * count if kept is None else kept
    if {len(probabilities), len(ids), len(ranks), len(kept)} != {count}:
        raise ValueError(f"{count} pieces need as many probabilities, ids, ranks and kept marks.")
    layout = _candidate_layout(title, pieces, probabilities, chosen)
    if not count:
        return {"data": [], "layout": layout}
    bars = _candidate_bars(pieces, probabilities, ids, ranks, kept, chosen, how_chosen)
    notes = [_candidate_note(kept[place], place == chosen, how_chosen) for place in range(count)]
    rows = [
        list(row)
        for row in zip(map(int, ranks), pieces, map(int, ids), map(float, probabilities), notes, strict=True)
    ]
    columns = [say("rank"), say("piece"), say("id"), PROBABILITY, say("note")]
    layout["meta"] = {"table": {"columns": columns, "rows": rows}}
    return {"data": [bars, _whole_rows(bars)], "layout": layout}


candidates = as_figure(candidates_spec)


def _candidate_layout(title: str, pieces: Sequence[str], probabilities: Sequence[float], chosen: int | None) -> dict:
    layout = base_layout(title, say("Probability"), say("Piece"))
    labels = [literal(shortened(piece)) for piece in pieces]
    layout["xaxis"] |= {"range": [0, 1], "tickformat": ".0%", "fixedrange": True}
    layout["yaxis"] |= {
        "range": [len(pieces) - 0.5, -0.5],
        "tickmode": "array",
        "tickvals": list(range(len(pieces))),
        "ticktext": [f"✓ <b>{label}</b>" if place == chosen else label for place, label in enumerate(labels)],
        "showgrid": False,
        "fixedrange": True,
    }
    layout["margin"] |= {"r": 64}
    layout["bargap"] = 0.28
    layout["barmode"] = "overlay"
    layout["height"] = int(np.clip(120 + 28 * len(pieces), 200, 560))
    layout["annotations"] = [_percent(place, value) for place, value in enumerate(probabilities)]
    return layout


def _percent(place: int, probability: float) -> dict[str, Any]:
    """Write a number at the right edge, where all of them line up."""
    return {
        "x": 1,
        "xref": "paper",
        "xanchor": "right",
        "xshift": 60,
        "y": place,
        "yref": "y",
        "text": percent(probability),
        "showarrow": False,
    }


def percent(probability: float) -> str:
    """Write a probability so that only 0 reads as 0% and only 1 as 100%.

    Args:
        probability: 0 to 1.
    """
    if probability in (0, 1):
        return f"{probability:.0%}"
    if probability < 0.001:
        return literal("<0.1%")
    return literal(">99.9%") if probability >= 0.9995 else f"{probability:.1%}"


def _candidate_bars(
    pieces: Sequence[str],
    probabilities: Sequence[float],
    ids: Sequence[int],
    ranks: Sequence[int],
    kept: Sequence[bool],
    chosen: int | None,
    how_chosen: str,
) -> Spec:
    places = range(len(pieces))
    notes = [_candidate_note(kept[place], place == chosen, how_chosen) for place in places]
    return {
        "type": "bar",
        "x": np.asarray(probabilities, dtype=np.float64),
        "y": np.arange(len(pieces)),
        "orientation": "h",
        "customdata": [int(token) for token in ids],
        "hovertext": [
            on_lines(bold(piece), say("id {id}, rank {rank}", id=int(token), rank=rank), literal(note))
            for piece, token, rank, note in zip(pieces, ids, ranks, notes, strict=True)
        ],
        "hovertemplate": hover("%{hovertext}", with_number(PROBABILITY, "%{x:.4f}")),
        "marker": {
            "color": [TARGET_COLOR if place == chosen else TARGET_PALE for place in places],
            "line": {"color": MARK_COLOR, "width": [1.5 if place == chosen else 0 for place in places]},
            "pattern": {"shape": ["" if keep else "/" for keep in kept], "solidity": 0.3},
        },
    }


def _whole_rows(bars: Spec) -> Spec:
    """Rows from edge to edge that nobody sees: a bar of 0.1 % is too thin to be pointed at."""
    numbers = [with_number(PROBABILITY, f"{probability:.4f}") for probability in bars["x"]]
    return {
        "type": "bar",
        "x": np.ones(len(bars["x"]), dtype=np.float32),
        "y": bars["y"],
        "orientation": "h",
        "customdata": bars["customdata"],
        "hovertext": list(map(on_lines, bars["hovertext"], numbers)),
        "hovertemplate": hover("%{hovertext}"),
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 0}},
    }


def _candidate_note(kept: bool, chosen: bool, how_chosen: str) -> str:
    said = ([how_chosen] if chosen else []) + ([] if kept else [say("cut off before sampling")])
    return joined("; ", said)


def attention_bar_spec(
    weights: np.ndarray,
    keys: Sequence[str],
    *,
    title: str,
    key_axis: str = say("Source piece"),
    allowed: np.ndarray | None = None,
    mask_reason: str = CLOSED,
    largest: float = 1.0,
) -> Spec:
    """Draw the weights of one query over the keys, in sentence order.

    Args:
        weights: `[key]`, 0 to 1.
        keys: A label for each key; equal labels stay apart.
        title: What the chart shows.
        key_axis: What the keys are.
        allowed: bool `[key]`, True = may attend; closed keys are hatched instead of 0. None: all may.
        mask_reason: Why closed keys are closed, in a few words, shown on hover.
        largest: The largest weight of all rows that this one is compared with, 0 to 1. The axis ends above it, at
            1, 0.5 or 0.25: in a long sentence every bar would be too low to see otherwise.

    Returns:
        The figure; a click on a bar returns its place as `customdata`.

    Raises:
        ValueError: If the sizes do not fit together.
    """
    values = np.asarray(weights, dtype=np.float32)
    open_keys = np.ones(values.shape, bool) if allowed is None else np.asarray(allowed, dtype=bool)
    if values.shape != (len(keys),) or open_keys.shape != values.shape:
        raise ValueError(f"{values.shape} weights and a {open_keys.shape} mask for {len(keys)} keys: give one each.")
    top = next((end for end in _ENDS if largest <= end), 1.0)
    bars = [_weight_bars(values, keys, open_keys)] if len(keys) else []
    if not open_keys.all():
        bars.append(_closed_bars(keys, open_keys, mask_reason, top))
    return {"data": bars, "layout": _attention_layout(title, keys, key_axis, top)}


attention_bar = as_figure(attention_bar_spec)


def _attention_layout(title: str, keys: Sequence[str], key_axis: str, top: float) -> dict[str, Any]:
    layout = base_layout(title, key_axis, say("Weight"))
    axis = ticks(keys, title=key_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(keys) - 0.5], "uirevision": "\n".join(keys)}
    layout["yaxis"] |= {"range": [0, top], "fixedrange": True}
    layout |= {
        "bargap": 0.25,
        "barmode": "overlay",
        "height": 300,
        "meta": {"ticks": {"xaxis": axis["spec"]}},
    }
    return layout


def _weight_bars(values: np.ndarray, keys: Sequence[str], allowed: np.ndarray) -> Spec:
    return {
        "type": "bar",
        "x": np.arange(len(keys)),
        "y": np.where(allowed, values, np.nan),
        "customdata": list(range(len(keys))),
        "hovertext": [f"{place}: {bold(piece)}" for place, piece in enumerate(keys, start=1)],
        "hovertemplate": hover("%{hovertext}", with_number(WEIGHT, "%{y:.4~g}")),
        "marker": {"color": SOURCE_COLOR},
    }


def _closed_bars(keys: Sequence[str], allowed: np.ndarray, reason: str, top: float) -> Spec:
    closed = [int(place) for place in np.flatnonzero(~allowed)]
    return {
        "type": "bar",
        "x": np.array(closed),
        "y": np.full(len(closed), top, dtype=np.float32),
        "customdata": closed,
        "hovertext": [f"{place + 1}: {bold(keys[place])}" for place in closed],
        "hovertemplate": hover("%{hovertext}", italic(reason)),
        "marker": {
            "color": MASK_COLOR,
            "line": {"width": 0},
            "pattern": {
                "shape": "/",
                "fgcolor": MASK_LINE,
                "bgcolor": MASK_COLOR,
                "size": 7,
                "solidity": 0.14,
            },
        },
    }
