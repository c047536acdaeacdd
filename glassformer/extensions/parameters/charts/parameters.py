"""Charts of one parameter: a matrix's singular values, its shortest and longest rows.

Source blue and target vermillion are left out on purpose: a parameter belongs to both sides, or its name says which.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import Kind, at_a_line, at_ends, layer, lying, lying_bars, stroke, table, upright
from glassformer.charts.hover import bold, hover, on_lines, with_number
from glassformer.charts.spread import HEIGHT
from glassformer.charts.theme import Spec, base_layout, literal, shortened
from transformer.i18n import say, say_n

HOW_TO_READ_SINGULAR = say(
    "A singular value is the factor by which the matrix stretches or shrinks vectors in one of its directions. "
    "After a steep drop, the directions are hardly used. The dotted line is the effective rank: how many equally "
    "used directions these values correspond to."
)
HOW_TO_READ_ROWS = say(
    "Each bar is the length of one piece's vector, a row of the table. The shortest is at the top, the longest at "
    "the bottom. Rows of pieces that never occurred in training often all have the same length, or lengths far "
    "from those of other rows."
)

_MOST_MARKED = 60  # singular values with a mark each
_AROUND = 1.15  # room below the smallest and above the largest singular value, as a factor


def singular_values_spec(values: np.ndarray, *, effective_rank: float, title: str) -> Spec:
    """Draw the singular values of a matrix, largest first, on a logarithmic axis.

    Values of 0 have no place on the axis and are counted under the title; a line marks `effective_rank`, unless it is
    NaN.
    """
    there = values[values > 0]
    layout = base_layout(title, say("Index of the singular value"), say("Singular value (log)"))
    layout |= {"height": HEIGHT, "hovermode": "closest"}
    layout["xaxis"] |= {"nticks": 8, "showgrid": False, "rangemode": "tozero", "tickformat": "d"}
    layout["yaxis"] |= {"type": "log", "exponentformat": "power", "nticks": 6}
    if len(there) < len(values):
        none = say_n("{n} singular value is 0", "{n} singular values are 0", len(values) - len(there))
        layout["title"]["subtitle"] = {"text": none, "font": {"size": 13}}
    if not len(there):
        return {"data": [], "layout": layout}
    ends = math.log10(there[-1] / _AROUND), math.log10(there[0] * _AROUND)
    layout["yaxis"] |= {"range": list(ends)} | _ticks(*ends)
    if not math.isnan(effective_rank):
        text = literal(say("effective rank {rank:.1f}", rank=effective_rank))
        named = at_a_line(effective_rank, 1, text, left=2 * effective_rank > len(values))
        layout["shapes"] = [upright(effective_rank, width=1.5, below=False)]
        layout["annotations"] = [named | {"font": {"color": theme.MARK_COLOR}, "yanchor": "top"}]
    name = say("singular value")
    says = hover(say("{n} of {all}", n="%{x}", all=len(values)), with_number(name, "%{y:.4~g}"))
    kind: Kind = "lines+markers" if len(there) <= _MOST_MARKED else "lines"
    look = stroke(theme.NEUTRAL_COLOR, 2, size=6)
    line = layer(kind, np.arange(1, len(there) + 1), there, look, name=name, says=says)
    return {"data": [line], "layout": layout}


def _ticks(low: float, high: float) -> Spec:
    """Ticks of a logarithmic axis between two powers of ten whose labels do not overlap."""
    if high - low >= 2:
        return {"dtick": math.ceil((high - low) / 8)}
    at = [float(f"{one:.3g}") for one in np.logspace(low, high, 9)[1::2]]
    return {"tickvals": at, "ticktext": [f"{one:g}" for one in at]}


def row_lengths_spec(
    pieces: Sequence[str], ids: Sequence[int], lengths: Sequence[float], *, special: Sequence[bool], title: str
) -> Spec:
    """Draw the lengths of the shortest rows, shortest first, and of the longest rows of a table of embeddings.

    Rows of `special` pieces are pale.
    """
    if not len(pieces) == len(ids) == len(lengths) == len(special):
        raise ValueError(f"{len(pieces)} pieces, {len(ids)} ids, {len(lengths)} lengths: give one for each.")
    layout = lying(title, say("Length of the row"), say("Piece"), [shortened(piece) for piece in pieces])
    layout["xaxis"] |= {"range": [0, 1.18 * (max(lengths, default=0.0) or 1.0)], "nticks": 6, "fixedrange": True}
    layout["annotations"] = at_ends(lengths, (f"{length:.3g}" for length in lengths))
    rows: list[list[Any]] = [
        [piece, int(i), float(length)] for piece, i, length in zip(pieces, ids, lengths, strict=True)
    ]
    table(layout, [say("piece"), say("id"), say("length of the row")], rows)
    pale = theme.SCALES["neutral"][1][1]
    bars = lying_bars(lengths, [pale if one else theme.NEUTRAL_COLOR for one in special])
    bars["hovertext"] = [
        on_lines(
            bold(piece),
            say("id {id}, a special piece", id=i) if one else say("id {id}", id=i),
            say("length {length:.5g}", length=length),
        )
        for (piece, i, _), length, one in zip(rows, lengths, special, strict=True)
    ]
    return {"data": [bars] if len(pieces) else [], "layout": layout}
