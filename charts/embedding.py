"""What a token's vector starts from: its embedding, the vector of its position, and their sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from charts.hover import bold, hover, with_number
from charts.positions import DIMENSION, DIMENSION_AXIS, number_places
from charts.theme import (
    CELLS,
    GUIDE_COLOR,
    LEGEND,
    MARK_COLOR,
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
    colour_bar,
    literal,
    ticks,
)
from words import say

HOW_TO_READ_STRENGTHS = say(
    "Each group is one token; each bar or mark is the root mean square √(Σ xⱼ² / d) of a vector, so the higher "
    "of two that are added has more say in the sum."
)
HOW_TO_READ_ROWS = say(
    "Each row is one vector of the chosen token, a column for each dimension; the last row is what the first layer "
    "reads, and dropout leaves it alone outside training."
)

_MOST_BARS = 24  # tokens; above this bars are too thin to be told apart
_SIDES = {"source": (SOURCE_PALE, SOURCE_COLOR), "target": (TARGET_PALE, TARGET_COLOR)}


@dataclass(frozen=True)
class Strengths:
    """One vector a token, and how large it is: a name and values [token]."""

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
    """Draw how large the vectors of each token are, side by side.

    Args:
        pieces: The tokens, in order; equal ones stay apart.
        strengths: At most four kinds of vectors: embedding, scaled embedding, position, sum.
        chosen: The token that is looked at, framed; None frames none.
        title: What the chart shows.
        token_axis: What the tokens are.
        colour: Their side.

    Returns:
        The figure; a click on a mark returns its token as `customdata`.

    Raises:
        ValueError: If there is not one value for each token.
    """
    layout = base_layout(title, token_axis, say("Root mean square")) | {"showlegend": True, "height": 380}
    axis = ticks(pieces, title=token_axis)
    layout["xaxis"] = {**axis["axis"], "range": [-0.5, len(pieces) - 0.5], "uirevision": "\n".join(pieces)}
    layout["yaxis"] |= {"rangemode": "tozero", "nticks": 6}
    layout["legend"] = dict(LEGEND)
    layout["margin"]["t"] = 92
    layout |= {"barmode": "group", "bargap": 0.25, "bargroupgap": 0, "hovermode": "closest"}
    layout["meta"] = {"ticks": {"xaxis": axis["spec"]}}
    if chosen is not None and 0 <= chosen < len(pieces):
        layout["shapes"] = [_frame(chosen)]
    pale, full = _SIDES.get(colour, (GUIDE_COLOR, MARK_COLOR))
    styles = [(pale, "circle"), (full, "square"), (NEUTRAL_COLOR, "diamond"), (MARK_COLOR, "cross")]
    data = [_marks(pieces, kind, *style) for kind, style in zip(strengths, styles, strict=False)] if pieces else []
    return {"data": data, "layout": layout}


def embedding_rows_spec(vectors: np.ndarray, names: Sequence[str], *, title: str) -> Spec:
    """Draw some vectors of one token under each other.

    Args:
        vectors: [vector, d_model].
        names: What each one is.
        title: Whose they are.

    Raises:
        ValueError: If there is not one name for each vector.
    """
    drawn = np.asarray(vectors, np.float32)
    if drawn.ndim != 2 or len(drawn) != len(names):
        raise ValueError(f"{drawn.shape} vectors and {len(names)} names: give one name for each vector.")
    width = drawn.shape[1]
    layout = base_layout(title, DIMENSION_AXIS, say("Vector"))
    number_places(layout, "xaxis", range(width), title=DIMENSION_AXIS)
    rows = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": list(map(literal, names))}
    layout["yaxis"] |= {**rows, "range": [len(names) - 0.5, -0.5], "fixedrange": True, "showgrid": False}
    layout["yaxis"] |= {"automargin": True, "zeroline": False}
    layout["height"] = 150 + 38 * len(names)
    columns = [with_number(DIMENSION, str(dimension)) for dimension in range(width)]
    layout["meta"]["cells"] = {"rows": [bold(name) for name in names], "columns": columns}
    largest = float(np.abs(drawn).max(initial=0)) or 1.0
    trace = {
        "type": "heatmap",
        "z": drawn,
        "zmin": -largest,
        "zmax": largest,
        "colorscale": SIGNED_SCALE,
        "meta": CELLS,
        "ygap": 3,
        "hovertemplate": hover("%{customdata[0]}", "%{customdata[1]}", with_number(say("value"), "%{z:.4f}")),
        "colorbar": colour_bar(),
        **{"x0": 0, "dx": 1, "y0": 0, "dy": 1},
    }
    return {"data": [trace], "layout": layout}


embedding_strengths = as_figure(embedding_strengths_spec)
embedding_rows = as_figure(embedding_rows_spec)


def _marks(pieces: Sequence[str], kind: Strengths, colour: str, symbol: str) -> Spec:
    values = np.asarray(kind.values, np.float32)
    if values.shape != (len(pieces),):
        raise ValueError(f"{len(pieces)} tokens and {values.shape} values of {kind.name}: give one for each token.")
    bars = len(pieces) <= _MOST_BARS
    shape = {"type": "bar"} if bars else {"type": "scatter", "mode": "markers"}
    return {
        **shape,
        "name": literal(kind.name),
        "x": np.arange(len(pieces), dtype=np.int32),
        "y": values,
        "customdata": list(range(len(pieces))),
        "hovertext": [f"{n}: {bold(piece)}" for n, piece in enumerate(pieces, start=1)],
        "hovertemplate": hover(
            say("token {token}", token="%{hovertext}"), with_number(literal(kind.name), "%{y:.3f}")
        ),
        "marker": {"color": colour} if bars else {"color": colour, "symbol": symbol, "size": 8},
    }


def _frame(place: int) -> Spec:
    line = {"color": MARK_COLOR, "width": 1.5, "dash": "dot"}
    across = {"x0": place - 0.5, "x1": place + 0.5, "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "rect", "line": line, **across}
