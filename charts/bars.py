"""Bars for one step: the weights over the source.

The axis starts at 0 and ends at the same number on every step, so that steps can be compared by eye.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from charts.hover import bold, hover, italic, with_number
from charts.tables import CLOSED, WEIGHT
from charts.theme import (
    MASK_COLOR,
    MASK_LINE,
    SOURCE_COLOR,
    Spec,
    as_figure,
    base_layout,
    ticks,
)
from words import say

_ENDS = (0.25, 0.5, 1.0)  # where an axis of weights may end

HOW_TO_READ = say(
    "Each bar is one source piece and the share of this step's attention it gets; all bars together make 1."
)


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
    layout = _attention_layout(title, keys, key_axis, top)
    return {"data": bars, "layout": layout}


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
