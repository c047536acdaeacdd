"""Two runs side by side, one of them with a mistake: a number per token, or a number per layer."""

from collections.abc import Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import Kind, along, layer, legend, numbered, stroke
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_BARS = say("Each group is one token. Its two bars show the two cases named above the chart.")
HOW_TO_READ_LAYERS = say("Layers run from left to right. The two lines show the two cases named above the chart.")

_STYLES = ((theme.GUIDE_COLOR, "circle"), (theme.TARGET_COLOR, "square"))
_MOST_BARS = 40  # tokens; above this bars are too thin to be told apart


def two_bars_spec(
    pieces: Sequence[str],
    numbers: Sequence[tuple[str, np.ndarray | None]],
    *,
    title: str,
    value_name: str,
    token_axis: str,
    form: str = ".3f",
    top: float | None = None,
) -> Spec:
    """Draw a number per token of two runs, side by side.

    `numbers` are the correct run's name and values [token], then the other's; None where there is none to draw.
    `form` writes a number on hover, `top` is the end of the axis; None fits it to the numbers.
    """
    layout = base_layout(title, token_axis, value_name) | {"height": 340, "hovermode": "closest"}
    layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0}
    along(layout, pieces, revised=False)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6} | ({} if top is None else {"range": [0, top]})
    legend(layout, 92)
    bars, data = len(pieces) <= _MOST_BARS, []
    for (name, values), (colour, symbol) in zip(numbers, _STYLES, strict=False):
        if values is None:
            continue
        if np.shape(values) != (len(pieces),):
            raise ValueError(f"{len(pieces)} tokens and {np.shape(values)} values of {name}: give one for each.")
        look = {"marker": {"color": colour} if bars else {"color": colour, "symbol": symbol}}
        says = hover("%{hovertext}", with_number(name, f"%{{y:{form}}}"))
        x, y = np.arange(len(pieces), dtype=np.int32), np.asarray(values, np.float64)
        kind: Kind = "bar" if bars else "markers"
        data.append(layer(kind, x, y, look, name=literal(name), says=says, texts=numbered(pieces)))
    return {"data": data, "layout": layout}


def two_lines_spec(
    depths: Sequence[str],
    numbers: Sequence[tuple[str, np.ndarray | None]],
    *,
    title: str,
    value_name: str,
    depth_axis: str,
    limits: tuple[float, float] | None = None,
) -> Spec:
    """Draw a number per depth of a stack for two runs, in the order of the computation.

    `numbers` are as in `two_bars_spec`, [depth]; `limits` are the ends of the axis; None fits them to the numbers.
    """
    layout = base_layout(title, depth_axis, value_name) | {"height": 340}
    places = list(range(len(depths)))
    layout["xaxis"] |= {"tickvals": places, "ticktext": list(map(literal, depths))}
    layout["xaxis"] |= {"range": [-0.3, len(depths) - 0.7]}
    layout["yaxis"] |= {"nticks": 6, "zeroline": True} | ({} if limits is None else {"range": list(limits)})
    legend(layout, 92)
    texts, data = [bold(depth) for depth in depths], []
    for (name, values), (colour, symbol) in zip(numbers, _STYLES, strict=False):
        if values is None:
            continue
        if np.shape(values) != (len(depths),):
            raise ValueError(f"{len(depths)} depths and {np.shape(values)} values of {name}: give one for each.")
        look = stroke(colour, 2, size=9, symbol=symbol) | {"cliponaxis": False}
        says, y = hover("%{hovertext}", with_number(name, "%{y:.3f}")), np.asarray(values, np.float64)
        data.append(layer("lines+markers", places, y, look, name=literal(name), says=says, texts=texts))
    return {"data": data, "layout": layout}
