"""The start of a token's vector: its embedding, the vector of its position, and their sum."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import SIDES, along, cells, frame, layer, legend, listed, numbered
from glassformer.charts.hover import bold, hover, with_number
from glassformer.charts.positions import DIMENSION, DIMENSION_AXIS, number_places
from glassformer.charts.theme import Colour, Spec, base_layout, colour_bar, literal
from transformer.i18n import say

HOW_TO_READ_STRENGTHS = say(
    "Each group is one token. Each bar or mark is the root mean square √(Σ xⱼ² / d) of a vector. When two vectors "
    "are added, the larger one influences the sum more."
)
HOW_TO_READ_ROWS = say(
    "Each row is one vector for the chosen token, each column a dimension. The last row is what the first layer "
    "reads; dropout is off except during training, so it does not change this row."
)

_MOST_BARS = 24  # tokens; above this bars are too thin to be told apart


@dataclass(frozen=True)
class Strengths:
    """The size of one vector per token: a name and values [token]."""

    name: str
    values: np.ndarray


def embedding_strengths_spec(
    pieces: Sequence[str],
    strengths: Sequence[Strengths],
    *,
    chosen: int | None,
    title: str,
    token_axis: str,
    colour: Colour = "source",
) -> Spec:
    """Draw the sizes of each token's vectors, side by side; a click returns the token.

    At most four kinds of vectors: embedding, scaled embedding, position, sum.
    """
    layout = base_layout(title, token_axis, say("Root mean square")) | {"height": 380, "hovermode": "closest"}
    layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0}
    along(layout, pieces)
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6}
    legend(layout, 92)
    if chosen is not None and 0 <= chosen < len(pieces):
        edges = (chosen - 0.5, chosen + 0.5)
        layout["shapes"] = [frame(edges, (0, 1), width=1.5, dash="dot", yref="y domain")]
    pale, full = SIDES[colour] if colour != "neutral" else (theme.GUIDE_COLOR, theme.MARK_COLOR)
    styles = [(pale, "circle"), (full, "square"), (theme.NEUTRAL_COLOR, "diamond"), (theme.MARK_COLOR, "cross")]
    data = [_marks(pieces, kind, *style) for kind, style in zip(strengths, styles, strict=False)] if pieces else []
    return {"data": data, "layout": layout, "how_to_read": HOW_TO_READ_STRENGTHS}


def embedding_rows_spec(vectors: np.ndarray, names: Sequence[str], *, title: str) -> Spec:
    """Draw some vectors [vector, d_model] of one token, one below the other."""
    drawn = np.asarray(vectors, np.float32)
    if drawn.ndim != 2 or len(drawn) != len(names):
        raise ValueError(f"{drawn.shape} vectors and {len(names)} names: give one name for each vector.")
    width = drawn.shape[1]
    layout = base_layout(title, DIMENSION_AXIS, say("Vector")) | {"height": 150 + 38 * len(names)}
    number_places(layout, "xaxis", range(width))
    listed(layout, map(literal, names))
    columns = [with_number(DIMENSION, str(dimension)) for dimension in range(width)]
    layout["meta"]["cells"] = {"rows": [bold(name) for name in names], "columns": columns}
    largest = float(np.abs(drawn).max(initial=0)) or 1.0
    says = hover("%{customdata[0]}", "%{customdata[1]}", with_number(say("value"), "%{z:.4f}"))
    trace = cells(drawn, (-largest, largest), theme.SIGNED_SCALE, says, bar=colour_bar())
    return {"data": [trace | {"ygap": 3}], "layout": layout}


def _marks(pieces: Sequence[str], kind: Strengths, colour: str, symbol: str) -> Spec:
    values = np.asarray(kind.values, np.float32)
    if values.shape != (len(pieces),):
        raise ValueError(f"{len(pieces)} tokens and {values.shape} values of {kind.name}: give one for each token.")
    bars = len(pieces) <= _MOST_BARS
    look = {"marker": {"color": colour} if bars else {"color": colour, "symbol": symbol, "size": 8}}
    name, places = literal(kind.name), np.arange(len(pieces), dtype=np.int32)
    says = hover(say("token {token}", token="%{hovertext}"), with_number(name, "%{y:.3f}"))
    texts, clicks = numbered(pieces), range(len(pieces))
    return layer("bar" if bars else "markers", places, values, look, name=name, says=says, texts=texts, clicks=clicks)
