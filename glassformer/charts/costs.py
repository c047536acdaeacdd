"""The cost of a model's components: each one's share of parameters and of multiply-adds.

Source blue and target vermillion are left out on purpose: a component belongs to both sides.
"""

from collections.abc import Sequence

from glassformer.charts import theme
from glassformer.charts.grammar import layer, legend, listed, table
from glassformer.charts.hover import on_lines
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say

HOW_TO_READ_SHARES = say(
    "Each pair of bars is one component: its share of all parameters and its share of all multiply-adds. The bars "
    "of one colour sum to 100 %."
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
