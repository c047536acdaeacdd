"""Two outputs side by side, row by row: the probability of each token, and how far the two runs disagree.

Rows are places of the aligned outputs, with the left run's pieces on the left and the right run's on the right. The
chart does not know how the two runs differ: the title says that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import Kind, along, layer, legend, level, note, stroke, table_of
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout
from transformer.i18n import joined, say

HOW_TO_READ = say(
    "Each row pairs a token of the left-hand output with a token of the right-hand output; ≠ marks rows in which "
    "they differ. ● is the left-hand token's probability in the left-hand run, ◆ the right-hand token's "
    "probability in the right-hand run."
)
HOW_TO_READ_CROSSED = say(
    "◇ is the probability that the right-hand run gives the left-hand token after reading the left-hand output so "
    "far. Each bar is KL(left ‖ right) between the two runs' predictions after that output, in nats; it is 0 if "
    "the predictions are the same."
)
DIVERGENCE = say("KL(left ‖ right) in nats")

_IN_LEFT = say("left-hand token in the left-hand run")
_LEFT_IN_RIGHT = say("left-hand token in the right-hand run")
_IN_RIGHT = say("right-hand token in the right-hand run")
_RIGHT_IN_LEFT = say("right-hand token in the left-hand run")

_FRAME, _ROW = 170, 25  # pixels of title, legend and axes, whose titles have two lines, and of a row
_SPLIT = (0.55, 0.66)  # where probabilities end and divergences begin, of the width
_NOTHING = "–"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One place of the aligned outputs; None where a run has no piece."""

    left: str | None  # the pieces
    right: str | None  # the pieces
    same: bool  # whether they are the same piece
    left_step: int | None = None  # their steps, from 0
    right_step: int | None = None  # their steps, from 0
    p_left: float | None = None  # probability of the left piece in the left run
    p_right: float | None = None  # of the right piece in the right run
    p_crossed: float | None = None  # of the left piece in the right run, after the left output
    p_crossed_back: float | None = None  # of the right piece in the left run, after the right output
    divergence: float | None = None  # KL(left ‖ right) of the next piece after the left output, in nats


def aligned_outputs_spec(
    rows: Sequence[Row], *, title: str, first: int | None, follow: Sequence[int | None] = ()
) -> Spec:
    """Draw two outputs side by side, the first piece on top.

    `first` is the row of the first difference; the browser marks row `follow[step]` while the reader steps.
    """
    wrong = [row for row in (first, *follow) if row is not None and not 0 <= row < len(rows)]
    if wrong:
        raise ValueError(f"Row {wrong[0]} of {len(rows)} aligned tokens.")
    crossed = any(row.p_crossed is not None for row in rows)
    layout = _aligned_layout(rows, title, crossed=crossed, first=first)
    if not rows:
        return {"data": [], "layout": layout}
    left = [row.p_left for row in rows]
    data = [
        _marks(rows, left, _IN_LEFT, "circle", theme.LEFT_COLOR),
        _marks(rows, [row.p_right for row in rows], _IN_RIGHT, "diamond", theme.RIGHT_COLOR) | {"yaxis": "y2"},
    ]
    if crossed:
        under = [row.p_crossed for row in rows]
        both = [(n, *pair) for n, pair in enumerate(zip(left, under, strict=True)) if None not in pair]
        # Lines between what both models give the left piece.
        x = np.array([part for _, one, other in both for part in (one, other, np.nan)])
        y = np.array([part for n, *_ in both for part in (n, n, np.nan)])
        joints = layer("lines", x, y, stroke(theme.GUIDE_COLOR, 2) | {"showlegend": False})
        diamonds = _marks(rows, under, _LEFT_IN_RIGHT, "diamond-open", theme.RIGHT_COLOR)
        bars = {"xaxis": "x2", "showlegend": False, "marker": {"color": theme.GUIDE_COLOR, "line": {"width": 0}}}
        apart = _layer("lying", rows, [row.divergence for row in rows], bars, DIVERGENCE)
        data = [joints, *data, diamonds, apart]
    if follow:
        mark = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "line": {"color": theme.MARK_COLOR, "width": 2}}
        layout["meta"]["follow"] = {"rows": list(follow), "starts": [0], "marks": [mark]}
    table_of(
        layout,
        (say("row"), range(1, len(rows) + 1)),
        (say("left step"), [None if row.left_step is None else row.left_step + 1 for row in rows]),
        (say("left token"), [row.left for row in rows]),
        (say("right step"), [None if row.right_step is None else row.right_step + 1 for row in rows]),
        (say("right token"), [row.right for row in rows]),
        (say("same token"), [int(row.same) for row in rows]),
        (say("p of the left-hand token in the left-hand run"), left),
        (say("p of the left-hand token in the right-hand run"), [row.p_crossed for row in rows]),
        (say("p of the right-hand token in the right-hand run"), [row.p_right for row in rows]),
        (say("p of the right-hand token in the left-hand run"), [row.p_crossed_back for row in rows]),
        (DIVERGENCE, [row.divergence for row in rows]),
    )
    return {"data": data, "layout": layout}


def _aligned_layout(rows: Sequence[Row], title: str, *, crossed: bool, first: int | None) -> Spec:
    layout = base_layout(title, say("Probability"), say("Left output")) | {"barmode": "overlay", "bargap": 0.45}
    end = _SPLIT[0] if crossed else 1.0
    layout["xaxis"] |= {"range": [-0.02, 1.02], "tickformat": ".2f", "nticks": 5, "fixedrange": True}
    layout["xaxis"]["domain"] = [0, end]
    for axis, side in (("yaxis", "left"), ("yaxis2", "right")):
        pieces = [_piece(getattr(row, side)) for row in rows]
        marked = [piece if row.same else f"≠ {piece}" for piece, row in zip(pieces, rows, strict=True)]
        along(layout, marked, axis=axis, revised=False)
        layout[axis] |= {"fixedrange": True}
    layout["yaxis2"] |= {"side": "right", "overlaying": "y", "anchor": "x2" if crossed else "x", "showticklabels": True}
    if crossed:
        layout["xaxis2"] = {"domain": [_SPLIT[1], 1], "anchor": "y", "rangemode": "tozero", "fixedrange": True}
        named = {"text": say("KL(left ‖ right)<br>in nats"), "standoff": 8}
        layout["xaxis2"] |= {"title": named, "zeroline": False, "automargin": True, "nticks": 3}
    legend(layout, 96)
    layout["height"] = int(np.clip(_FRAME + _ROW * len(rows), 260, 900))
    layout["meta"]["least_height"] = min(_FRAME + 15 * len(rows), layout["height"])
    layout["shapes"] = [] if first is None else [level(first - 0.5, colour=theme.MARK_COLOR)]
    layout["annotations"] = []
    if first:  # above row 0 stands the legend
        above = {"xref": "paper", "xanchor": "center", "yref": "y", "yanchor": "bottom", "font": {"size": 11}}
        layout["annotations"] = [note(end / 2, first - 0.5, say("first difference")) | above]
    return layout


def _piece(piece: str | None) -> str:
    return _NOTHING if piece is None else piece


def _marks(rows: Sequence[Row], values: Sequence[float | None], name: str, symbol: str, colour: str) -> Spec:
    marker = {"symbol": symbol, "size": 10, "color": colour, "line": {"width": 1.5, "color": colour}}
    return _layer("markers", rows, values, {"cliponaxis": False, "marker": marker}, name)


def _layer(kind: Kind, rows: Sequence[Row], values: Sequence[float | None], look: Spec, name: str) -> Spec:
    """Marks in the rows that have a number."""
    there = [place for place, value in enumerate(values) if value is not None]
    x, texts = np.array([values[place] for place in there], dtype=np.float64), [_said(rows[i], i) for i in there]
    return layer(kind, x, np.array(there), look, name=name, texts=texts)


def _said(row: Row, place: int) -> str:
    """What hover says of a row: all of its numbers."""
    pieces = joined(" | ", [bold(_piece(row.left)), bold(_piece(row.right))])
    named = [
        (_IN_LEFT, row.p_left, ".4f"),
        (_LEFT_IN_RIGHT, row.p_crossed, ".4f"),
        (_IN_RIGHT, row.p_right, ".4f"),
        (_RIGHT_IN_LEFT, row.p_crossed_back, ".4f"),
        (DIVERGENCE, row.divergence, ".4g"),
    ]
    numbers = [with_number(name, format(value, form)) for name, value, form in named if value is not None]
    return on_lines(say("row {n}", n=place + 1), pieces, *numbers)
