"""Perplexity by position: of each piece of a text alone, and of all up to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from charts.hover import bold, hover, with_number
from charts.piece_losses import PIECE, level
from charts.theme import (
    LEGEND,
    MARK_COLOR,
    NEUTRAL_COLOR,
    SOURCE_COLOR,
    Spec,
    as_figure,
    base_layout,
    literal,
    subtitle,
    ticks,
)
from words import say

HOW_TO_READ = say(
    "A point is one piece by itself: 1 / p, so many pieces alike would each be as rare. The line is e to the power "
    "of the mean loss so far, and its end the perplexity of the whole; 1 is certain."
)
PERPLEXITY = say("Perplexity (pieces alike, logarithmic)")
_MOST_MARKED = 200  # points with a size that can be hit


def perplexity_spec(
    pieces: Sequence[str],
    alone: Sequence[float],
    so_far: Sequence[float],
    *,
    n_pieces: int,
    chosen: int | None,
    title: str,
    piece_axis: str = PIECE,
) -> Spec:
    """Draw the perplexity by position.

    Args:
        pieces: The pieces of the text, in order.
        alone: Of each piece: 1 / p, from 1.
        so_far: Of each with all before it, from 1.
        n_pieces: Pieces of the vocabulary: the perplexity of guessing.
        chosen: The place that is looked at, from 0; None marks none.
        title: What the chart shows.
        piece_axis: What the pieces are.

    Returns:
        The figure; a click on a point returns its place as `customdata`.

    Raises:
        ValueError: If there are not two numbers for each piece.
    """
    values = [np.asarray(one, np.float64) for one in (alone, so_far)]
    if any(one.shape != (len(pieces),) for one in values):
        raise ValueError(f"{len(pieces)} pieces need a perplexity alone and one so far each.")
    layout = base_layout(title, piece_axis, PERPLEXITY) | {"height": 380, "showlegend": True, "legend": LEGEND}
    labels = ticks(pieces, title=piece_axis)
    layout["xaxis"] = {**labels["axis"], "range": [-0.5, len(pieces) - 0.5], "uirevision": "\n".join(pieces)}
    top = max(float(n_pieces), *(float(one[np.isfinite(one)].max(initial=1)) for one in values))
    layout["yaxis"] |= {"type": "log", "range": [-0.08, float(np.log10(top)) + 0.3]}
    layout["yaxis"] |= {"tickvals": [10**i for i in range(int(np.log10(top)) + 2)], "tickformat": ",d"}
    layout["margin"]["t"] = 94
    layout["shapes"] = [level(float(n_pieces), "dash")]
    subtitle(layout, [say("dashed: guessing among all {n:,} pieces", n=n_pieces)])
    columns = [say("place"), say("piece"), say("perplexity of this piece"), say("perplexity so far")]
    rows = [[i + 1, piece, *map(float, pair)] for i, (piece, *pair) in enumerate(zip(pieces, *values, strict=True))]
    layout["meta"] = {"ticks": {"xaxis": labels["spec"]}, "table": {"columns": columns, "rows": rows}}
    names = [f"{place}: {bold(piece)}" for place, piece in enumerate(pieces, start=1)]
    points = _points(values[0], names, chosen)
    line = _line(values[1], names)
    return {"data": [points, line] if len(pieces) else [], "layout": layout}


perplexity = as_figure(perplexity_spec)


def _points(values: np.ndarray, names: Sequence[str], chosen: int | None) -> Spec:
    here = np.arange(len(values)) == chosen
    name = say("this piece")
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": np.arange(len(values), dtype=np.int32),
        "y": values,
        "customdata": list(range(len(values))),
        "hovertext": list(names),
        "hovertemplate": hover("%{hovertext}", with_number(name, "%{y:,.4~g}")),
        "marker": {
            "color": SOURCE_COLOR,
            "symbol": "circle",
            "size": np.where(here, 13, 8 if len(values) <= _MOST_MARKED else 4),
            "line": {"color": MARK_COLOR, "width": np.where(here, 2, 0)},
        },
    }


def _line(values: np.ndarray, names: Sequence[str]) -> Spec:
    name = say("all so far")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": literal(name),
        "x": np.arange(len(values), dtype=np.int32),
        "y": values,
        "customdata": list(range(len(values))),
        "hovertext": list(names),
        "hovertemplate": hover("%{hovertext}", with_number(name, "%{y:,.4~g}")),
        "line": {"color": NEUTRAL_COLOR, "width": 2.5},
    }
