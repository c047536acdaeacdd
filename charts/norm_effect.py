"""What a norm did to every token's vector: its mean and its deviation, before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.grammar import along, frame, layer, legend
from charts.hover import hover, with_number
from charts.stream import named_token, shades
from charts.theme import GUIDE_COLOR, Colour, Spec, base_layout
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
    """Draw mean and deviation of every token's vector before and after a norm, each [token]; a click is a token."""
    numbers = [np.asarray(values, np.float32) for values in (*means, *deviations)]
    if any(values.shape != (len(pieces),) for values in numbers):
        raise ValueError(f"{len(pieces)} tokens: give one value for each.")
    layout = base_layout(title, token_axis, say("Mean")) | {"height": 400, "hovermode": "closest"}
    along(layout, pieces, title=token_axis)
    layout["xaxis"] |= {"anchor": "y2"}
    panel = layout["yaxis"] | {"nticks": 5, "fixedrange": True}
    layout["yaxis"] = panel | {"domain": [0.56, 1], "zeroline": True, "zerolinecolor": GUIDE_COLOR}
    layout["yaxis2"] = panel | {"domain": [0, 0.44], "title": {"text": say("Deviation"), "standoff": 8}}
    layout["yaxis2"] |= {"rangemode": "tozero"}
    legend(layout, 92)
    layout["shapes"] = [frame((chosen - 0.5, chosen + 0.5), (0, 1), width=1.5, dash="dot", yref="paper")]
    pale, full = shades(colour)
    earlier, later = say("before", about="before a norm"), say("after", about="after a norm")
    marks = [
        (say("mean before"), earlier, "y", {"color": pale, "symbol": "diamond"}),
        (say("mean after"), later, "y", {"color": full, "symbol": "circle"}),
        (say("deviation before"), earlier, "y2", {"color": pale, "symbol": "diamond"}),
        (say("deviation after"), later, "y2", {"color": full, "symbol": "circle"}),
    ]
    texts = [named_token(place, piece) for place, piece in enumerate(pieces, start=1)]
    places, clicks, data = np.arange(len(pieces), dtype=np.int32), range(len(pieces)), []
    for values, (what, name, axis, style) in zip(numbers, marks, strict=True):
        look = {"yaxis": axis, "showlegend": axis == "y", "marker": style | {"size": 9}}
        says = hover("%{hovertext}", with_number(what, "%{y:.4f}"))
        data.append(layer("markers", places, values, look, name=name, says=says, texts=texts, clicks=clicks))
    return {"data": data, "layout": layout}
