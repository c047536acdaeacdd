"""Scatter chart of the lines of a file: two numbers per line; a click gives the line."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, legend
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.theme import Spec, base_layout, literal, shortened
from transformer.i18n import say

HOW_TO_READ_POINTS = say("Each point is one line of the file; a click opens it.")

HEIGHT = 250
_TEXT = 60  # characters of a line on hover


def line_points_spec(
    x: np.ndarray,
    y: np.ndarray,
    texts: Sequence[str],
    *,
    numbers: Sequence[int],
    cut: Sequence[bool],
    chosen: int | None,
    x_name: str,
    y_name: str,
    title: str,
) -> Spec:
    """Draw two finite numbers of each line [line] against each other; a click returns the line's number in its file.

    Lines whose output was `cut` at the limit are open points in another colour; `chosen` is a line's number.
    """
    if not len(x) == len(y) == len(texts) == len(numbers) == len(cut):
        raise ValueError(f"{len(x)} numbers: give a second one, a text, a number and a mark for each line.")
    layout = base_layout(title, x_name, y_name) | {"height": HEIGHT, "hovermode": "closest"}
    legend(layout, 78 if any(cut) else layout["margin"]["t"])
    layout["showlegend"] = any(cut)
    styles: tuple[tuple[bool, str, Spec], ...] = (
        (False, say("ended"), {"color": theme.NEUTRAL_COLOR, "symbol": "circle", "size": 7, "opacity": 0.65}),
        (True, say("cut off at the length limit"), {"color": theme.TARGET_COLOR, "symbol": "circle-open", "size": 8}),
    )
    named = [with_number(literal(x_name), "%{x:.3f}"), with_number(literal(y_name), "%{y:.3f}")]
    said = [
        say("Line {n}: {text}", n=number, text=bold(shortened(text, limit=_TEXT)))
        for number, text in zip(numbers, texts, strict=True)
    ]
    data = []
    for is_cut, name, marker in styles:
        places = [i for i, one in enumerate(cut) if bool(one) == is_cut]
        if places:
            across, down = x[np.array(places)].astype(np.float32), y[np.array(places)].astype(np.float32)
            its_texts, clicks = [said[i] for i in places], [numbers[i] for i in places]
            says, look = hover("%{hovertext}", *named), {"marker": marker}
            data.append(layer("markers", across, down, look, name=name, says=says, texts=its_texts, clicks=clicks))
    ring = {"color": theme.MARK_COLOR, "symbol": "circle-open", "size": 16, "line": {"width": 2}}
    alone = {"showlegend": False, "marker": ring}
    rings = [
        layer("markers", [float(x[i])], [float(y[i])], alone) for i, number in enumerate(numbers) if number == chosen
    ]
    return {"data": [*data, *rings], "layout": layout}
