"""What a norm did to every token's vector: its mean and its deviation, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.hover import hover, with_number
from charts.stream import SIDES, named_token
from charts.theme import GUIDE_COLOR, LEGEND, MARK_COLOR, Colour, Spec, as_figure, base_layout, ticks
from words import say


def norm_effect_spec(
    pieces: Sequence[str],
    *,
    means: tuple[np.ndarray, np.ndarray],
    deviations: tuple[np.ndarray, np.ndarray],
    chosen: int,
    title: str,
    token_axis: str,
    colour: Colour = "source",
) -> Spec:
    """Draw mean and standard deviation of every token's vector before and after a norm.

    Args:
        pieces: The tokens; equal ones stay apart.
        means: Before and after, each `[token]`.
        deviations: The same for the standard deviation.
        chosen: The token to frame.
        title: What the chart shows.
        token_axis: What the tokens are.
        colour: Whose tokens they are.

    Returns:
        The figure; a click on a mark returns its token as `customdata`.

    Raises:
        ValueError: If there is not one value for each token.
    """
    numbers = [np.asarray(values, np.float32) for values in (*means, *deviations)]
    if any(values.shape != (len(pieces),) for values in numbers):
        raise ValueError(f"{len(pieces)} tokens: give one value for each.")
    layout = base_layout(title, token_axis, say("Mean")) | {"height": 400, "showlegend": True, "hovermode": "closest"}
    axis = ticks(pieces, title=token_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(pieces) - 0.5], "uirevision": "\n".join(pieces)}
    layout["xaxis"] |= {"anchor": "y2"}
    panel = layout["yaxis"] | {"nticks": 5, "fixedrange": True}
    layout["yaxis"] = panel | {"domain": [0.56, 1], "zeroline": True, "zerolinecolor": GUIDE_COLOR}
    layout["yaxis2"] = panel | {"domain": [0, 0.44], "title": {"text": say("Deviation"), "standoff": 8}}
    layout["yaxis2"] |= {"rangemode": "tozero"}
    layout["legend"] = dict(LEGEND)
    layout["margin"]["t"] = 92
    layout["meta"] = {"ticks": {"xaxis": axis["spec"]}}
    line = {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}
    edges = {"x0": chosen - 0.5, "x1": chosen + 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    layout["shapes"] = [{"type": "rect", "line": line, **edges}]
    pale, full = SIDES.get(colour, (GUIDE_COLOR, MARK_COLOR))
    earlier, later = say("before", about="before a norm"), say("after", about="after a norm")
    marks = [
        _Marks(say("mean before"), earlier, "y", pale, "diamond"),
        _Marks(say("mean after"), later, "y", full, "circle"),
        _Marks(say("deviation before"), earlier, "y2", pale, "diamond"),
        _Marks(say("deviation after"), later, "y2", full, "circle"),
    ]
    return {"data": [_drawn(pieces, *pair) for pair in zip(numbers, marks, strict=True)], "layout": layout}


norm_effect = as_figure(norm_effect_spec)


@dataclass(frozen=True)
class _Marks:
    what: str
    name: str
    axis: str
    colour: str
    symbol: str


def _drawn(pieces: Sequence[str], values: np.ndarray, marks: _Marks) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": marks.name,
        "x": np.arange(len(pieces), dtype=np.int32),
        "y": values,
        "yaxis": marks.axis,
        "showlegend": marks.axis == "y",
        "customdata": list(range(len(pieces))),
        "hovertext": [named_token(place, piece) for place, piece in enumerate(pieces, start=1)],
        "hovertemplate": hover("%{hovertext}", with_number(marks.what, "%{y:.4f}")),
        "marker": {"color": marks.colour, "size": 9, "symbol": marks.symbol},
    }
