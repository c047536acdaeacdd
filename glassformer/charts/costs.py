"""The cost of a model's components: parameters, and multiply-adds by the length of the sentence.

Lines differ in colour, dash and width, so they are distinct in grey, too. Source blue and target vermillion are
left out on purpose: a component belongs to both sides.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import at_a_line, layer, legend, listed, stroke, table, upright
from glassformer.charts.hover import hover, on_lines
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_SHARES = say(
    "Each pair of bars is one component: its share of all parameters and its share of all multiply-adds. The bars "
    "of one colour sum to 100 %."
)
HOW_TO_READ_CURVES = say(
    "Both axes are logarithmic, so the linear part (a·n) rises with slope 1 and the n² part (b·n²) with slope 2. "
    "The two lines meet at n = a/b; for longer texts, the n² part is more than half of all multiply-adds."
)

MAPS_LINE = say("n² part: q·k and weights·v")
LINEAR_LINE = say("All linear parts")
_STYLES = (
    (theme.GUIDE_COLOR, "dash", 1.6),
    (theme.GUIDE_COLOR, "dot", 1.6),
    (theme.GUIDE_COLOR, "dashdot", 1.6),
    (theme.GUIDE_COLOR, "longdash", 1.6),
)
_ROW = 40  # pixels of one component


def cost_shares_spec(
    names: Sequence[str], parameters: Sequence[int], multiply_adds: Sequence[int], *, title: str
) -> Spec:
    """Draw each component's share of the learned parameters and of the multiply-adds of a pass, the first on top."""
    if not len(names) == len(parameters) == len(multiply_adds):
        raise ValueError(
            f"{len(names)} names, {len(parameters)} counts of parameters and {len(multiply_adds)} of multiply-adds: "
            "give one of each for every component."
        )
    layout = base_layout(title, say("Share (%)"), "") | {"barmode": "group", "bargap": 0.3, "bargroupgap": 0}
    layout["height"] = 130 + _ROW * len(names)
    legend(layout, 80)
    listed(layout, map(literal, names))
    traces = [
        _shares(say("Parameters"), parameters, names, str(theme.SCALES["neutral"][1][1])),
        _shares(say("Multiply-adds"), multiply_adds, names, theme.NEUTRAL_COLOR),
    ]
    first, second = (trace["x"] for trace in traces)
    layout["xaxis"] |= {"range": [0, max(1.0, max([*first, *second], default=0.0) * 1.22)], "nticks": 6}
    layout["xaxis"] |= {"fixedrange": True}
    columns = [
        say("Component"),
        say("Parameters"),
        say("Share of parameters (%)"),
        say("Multiply-adds"),
        say("Share of multiply-adds (%)"),
    ]
    table(layout, columns, zip(names, parameters, first, multiply_adds, second, strict=True))
    return {"data": traces, "layout": layout, "how_to_read": HOW_TO_READ_SHARES}


def cost_curves_spec(
    lengths: Sequence[int],
    lines: Mapping[str, Sequence[int]],
    *,
    quadratic: Sequence[int],
    linear: Sequence[int],
    crossing: float,
    max_len: int,
    chosen: int,
    title: str,
    sides: int = 2,
) -> Spec:
    """Draw multiply-adds by length, in tokens on each side and increasing, on logarithmic axes.

    `lines` are the linear components by name, those of 0 left out; `linear` is their sum, `quadratic` the n² part,
    each with one count per length. At `crossing` tokens the two are equal. Lengths above `max_len`, the most tokens
    that the model reads, are shaded. `sides` is 1 for a model that reads one text.
    """
    drawn = [
        (name, line, _STYLES[place % len(_STYLES)]) for place, (name, line) in enumerate(lines.items()) if any(line)
    ]
    drawn.append((LINEAR_LINE, linear, (theme.MARK_COLOR, "solid", 2)))
    drawn.append((MAPS_LINE, quadratic, (theme.NEUTRAL_COLOR, "solid", 3)))
    for name, line, _ in drawn:
        if len(line) != len(lengths):
            raise ValueError(f"{name} has {len(line)} counts for {len(lengths)} lengths: give one for each.")
    axis = say("Tokens, n (log)") if sides == 1 else say("Tokens on each side, n (log)")
    layout = base_layout(title, axis, say("Multiply-adds (log)")) | {"hovermode": "closest", "height": 500}
    legend(layout, 168)
    last = lengths[-1]
    layout["xaxis"] |= {"type": "log", "range": [math.log10(lengths[0]), math.log10(last)], "showgrid": False}
    round_numbers = [4**power for power in range(12) if 4**power <= last]
    layout["xaxis"] |= {"tickmode": "array", "tickvals": round_numbers, "ticktext": [f"{n:,}" for n in round_numbers]}
    layout["yaxis"] |= {"type": "log", "exponentformat": "power", "dtick": 1}
    layout["shapes"], layout["annotations"] = _marks(crossing, max_len, chosen, last)
    x, data = np.asarray(lengths, dtype=np.float64), []
    for name, counts, (colour, dash, width) in drawn:
        says = hover(literal(name), "n = %{x:,}: <b>%{y:,.0f}</b>")
        y = np.asarray(counts, dtype=np.float64)
        data.append(layer("lines", x, y, stroke(colour, width, dash), name=literal(name), says=says))
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_CURVES}


def _shares(name: str, counts: Sequence[int], names: Sequence[str], colour: str) -> Spec:
    total = sum(counts) or 1
    shares = [100 * count / total for count in counts]
    texts = [
        on_lines(
            literal(label), say("{name}: {count}, {share:.2f} &#37;", name=name, count=f"<b>{count:,}</b>", share=share)
        )
        for label, count, share in zip(names, counts, shares, strict=True)
    ]
    written = [f"{share:.1f}" if count else "0" for share, count in zip(shares, counts, strict=True)]
    look = {"text": written, "textposition": "outside", "textfont": {"size": 11}, "cliponaxis": False}
    look |= {"marker": {"color": colour}}
    return layer("lying", shares, list(range(len(names))), look, name=name, texts=texts)


def _marks(crossing: float, max_len: int, chosen: int, last: int) -> tuple[list[Spec], list[Spec]]:
    """The shaded part beyond what the model reads, the chosen length and the crossing; names at the bottom."""
    shapes: list[Spec] = []
    notes: list[tuple[float, float, str]] = []
    if max_len < last:
        beyond = {"type": "rect", "x0": max_len, "x1": last, "y0": 0, "y1": 1, "yref": "y domain", "layer": "below"}
        shapes.append(beyond | {"fillcolor": theme.MASK_COLOR, "line": {"width": 0}, "opacity": 0.6})
        notes.append((last, 0.0, say("beyond the model's limit of {length:,} tokens (theoretical)", length=max_len)))
    shapes.append(upright(chosen, theme.MARK_COLOR))
    notes.append((chosen, 0.075, f"n = {chosen:,}"))
    if crossing <= last:
        shapes.append(upright(crossing, theme.NEUTRAL_COLOR))
        notes.append((crossing, 0.15, say("n² overtakes")))
    look, middle = {"font": {"size": 12}, "yanchor": "bottom"}, math.sqrt(last)
    # Annotations on a logarithmic axis stand at logarithms, shapes do not.
    return shapes, [at_a_line(math.log10(x), y, literal(text), left=x > middle) | look for x, y, text in notes]
