"""A beam search as a tree that grows from left to right, a step at a time.

What led to a result is strong, what was kept for a while is thinner, what was dropped is a thin dotted end.
Beginnings that hypotheses share stand once. Results are written out at the right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from charts.hover import bold, hover, on_lines
from charts.lanes import Growing, lanes
from charts.theme import (
    GUIDE_COLOR,
    LEGEND,
    MARK_COLOR,
    MASK_COLOR,
    SCALES,
    TARGET_COLOR,
    Spec,
    as_figure,
    base_layout,
    literal,
    shortened,
)
from words import joined, say

HOW_TO_READ = say(
    "From left to right each step adds a piece. Strong lines lead to results, thinner ones were kept for a while, "
    "and a dotted end was dropped at once. Point at a mark for its numbers; click it to open that beginning."
)
Kind = Literal["open", "ended", "dropped", "closed"]

_KEPT_COLOR = SCALES["target"][2][1]
_PLOT = 640  # pixels that a window of 1280 leaves for the steps
_LEAST_STEP = 32  # pixels; with less the chart is wider than its place, and scrolls
_MARGIN = 226  # pixels at the right, for the results
_FONT = {"size": 11, "family": '"Source Code Pro", monospace'}  # pieces are written so in the sentence, too
_LETTER = 6.6  # pixels
_LINE = 36  # letters in a line of a result
_LINE_HEIGHT, _LANE, _LEAST_LANE = 14, 44, 26  # pixels
_MOST_HEIGHT = 560


@dataclass(frozen=True)
class Twig:
    """One beginning of the tree.

    Attributes:
        place: Its name, which a click returns; parents come first.
        parent: That of what it continues; None for a first piece.
        step: Of its last piece, from 0.
        piece: Its last piece.
        kind: What became of it.
        numbers: What hover says beside its piece, line by line; not yet escaped.
        result: The best result that it leads to, from 0; None if it leads to none.
        named: Whether its piece is written beside it.
    """

    place: int
    parent: int | None
    step: int
    piece: str
    kind: Kind
    numbers: Sequence[str]
    result: int | None = None
    named: bool = True

    @property
    def is_kept(self) -> bool:
        """Whether its round kept it."""
        return self.kind in ("open", "ended")


@dataclass(frozen=True)
class Leaf:
    """A result.

    Attributes:
        place: The name of its last beginning.
        text: What it says.
        numbers: Its numbers in a few words.
    """

    place: int
    text: str
    numbers: str


def search_tree_spec(
    twigs: Sequence[Twig],
    leaves: Sequence[Leaf],
    *,
    title: str,
    start: str,
    n_steps: int,
    step: int | None = None,
    shown: int | None = None,
) -> Spec:
    """Draw a search.

    Args:
        twigs: All beginnings that are drawn.
        leaves: The results, best first; each ends a twig that was kept.
        title: What the chart shows.
        start: What stands before the first step.
        n_steps: Steps that there is room for.
        step: The step that is looked at, from 0; None for none.
        shown: The result that is looked at, from 0; None for none.

    Returns:
        The figure; a click on a mark returns its name as `customdata`.
    """
    ends = {leaf.place for leaf in leaves}
    rows = lanes([
        Growing(twig.place, twig.parent, twig.step, _order(twig), twig.place in ends)
        for twig in twigs if twig.is_kept
    ])  # fmt: skip
    at = {twig.place: (twig.step + 1.0, float(rows[twig.place])) for twig in twigs if twig.is_kept}
    root = (0.0, at[twigs[0].place][1] if twigs and twigs[0].place in at else 0.0)
    at |= _stubs(twigs, at, root)
    n_lanes = max(rows.values(), default=0) + 1
    layout = _layout(title, n_steps, n_lanes, n_lines=max((len(_lines(1, leaf)) for leaf in leaves), default=1))
    if step is not None and step < n_steps:
        layout["shapes"] = [_band(step)]
    data = [
        *_edges(twigs, at, root, shown),
        *_leads(leaves, at, n_steps),
        _start(start, root),
        *_marks(twigs, at, step),
        *_names(twigs, at, n_steps),
        *_results(leaves, at, n_steps),
    ]
    return {"data": data, "layout": layout}


search_tree = as_figure(search_tree_spec)


def _order(twig: Twig) -> float:
    """Which child stays on its parent's lane: the way to the best result, else the better one."""
    return twig.result if twig.result is not None else 1e6 + twig.place


def _stubs(
    twigs: Iterable[Twig], at: dict[int, tuple[float, float]], root: tuple[float, float]
) -> dict[int, tuple[float, float]]:
    """Where what was dropped ends: a little behind what it would have continued, one under the other."""
    found: dict[int, tuple[float, float]] = {}
    seen: dict[int | None, int] = {}
    for twig in twigs:
        if twig.is_kept or (twig.parent is not None and twig.parent not in at):
            continue
        x, y = root if twig.parent is None else at[twig.parent]
        n = seen[twig.parent] = seen.get(twig.parent, 0) + 1
        found[twig.place] = (x + 0.62, y + 0.1 + 0.26 * n)
    return found


def _layout(title: str, n_steps: int, n_lanes: int, *, n_lines: int) -> Spec:
    layout = base_layout(title, say("Step"), say("Beginnings"))
    layout["xaxis"] |= {
        "range": [-0.6, n_steps + 0.8],
        "showgrid": False,
        "tickformat": "d",
        "nticks": 12,
        "tick0": 1,
    }
    if n_steps <= 24:
        layout["xaxis"] |= {"dtick": 1}
    layout["yaxis"] |= {"range": [n_lanes - 0.1, -0.8], "showgrid": False, "showticklabels": False, "ticks": ""}
    least = max(_LEAST_LANE, _LINE_HEIGHT * n_lines)
    lane = int(np.clip(_MOST_HEIGHT / n_lanes, least, max(_LANE, least)))
    layout["margin"] |= {"r": _MARGIN, "t": 66}
    layout |= {"height": max(240, 120 + lane * n_lanes), "hovermode": "closest", "hoverdistance": 14}
    layout |= {"showlegend": True, "legend": dict(LEGEND)}
    layout["meta"] = {
        "least_height": max(240, 110 + least * n_lanes),
        "least_width": int(_MARGIN + 40 + _LEAST_STEP * (n_steps + 1.4)),
    }
    return layout


def _band(step: int) -> Spec:
    return {"type": "rect", "x0": step + 0.5, "x1": step + 1.5, "yref": "paper", "y0": 0, "y1": 1,
            "fillcolor": MASK_COLOR, "opacity": 0.6, "line": {"width": 0}, "layer": "below"}  # fmt: skip


def _edges(
    twigs: Sequence[Twig], at: dict[int, tuple[float, float]], root: tuple[float, float], shown: int | None
) -> list[Spec]:
    """The lines: what was dropped, what was kept, what leads to a result, and the one that is looked at."""
    groups: list[tuple[str, list[Twig], Spec]] = [
        (say("dropped"), [], {"color": GUIDE_COLOR, "width": 1, "dash": "dot"}),
        (say("kept for a while"), [], {"color": _KEPT_COLOR, "width": 1.5}),
        (say("leads to a result"), [], {"color": TARGET_COLOR, "width": 2.5}),
        (say("the result that is looked at"), [], {"color": MARK_COLOR, "width": 4}),
    ]
    for twig in twigs:
        if twig.place in at:
            groups[_strength(twig, shown)][1].append(twig)
    return [_line(name, ones, at, root, style) for name, ones, style in groups if ones]


def _strength(twig: Twig, shown: int | None) -> int:
    if not twig.is_kept:
        return 0
    if twig.result is None:
        return 1
    return 3 if twig.result == shown else 2


def _line(
    name: str, ones: Iterable[Twig], at: dict[int, tuple[float, float]], root: tuple[float, float], style: Spec
) -> Spec:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for twig in ones:
        (x0, y0), (x1, y1) = root if twig.parent is None else at[twig.parent], at[twig.place]
        xs += [x0, x1, None]
        ys += [y0, y1, None]
    return {"type": "scatter", "mode": "lines", "name": name, "x": xs, "y": ys, "line": style, "hoverinfo": "skip"}


def _start(piece: str, root: tuple[float, float]) -> Spec:
    return {"type": "scatter", "mode": "markers+text", "x": [root[0]], "y": [root[1]], "hoverinfo": "skip",
            "text": [literal(shortened(piece, limit=8))], "textposition": "top center", "textfont": _FONT,
            "showlegend": False, "cliponaxis": False,
            "marker": {"symbol": "circle-open", "size": 9, "color": MARK_COLOR}}  # fmt: skip


def _marks(twigs: Sequence[Twig], at: dict[int, tuple[float, float]], step: int | None) -> list[Spec]:
    """The marks, one trace a kind, as a shape says what became of a beginning; they take hover and clicks."""
    kinds: list[tuple[Kind, str, Spec]] = [
        ("open", "", {"symbol": "circle", "color": TARGET_COLOR}),
        ("ended", say("ended"), {"symbol": "square", "color": TARGET_COLOR}),
        ("dropped", "", {"symbol": "x-thin-open", "color": GUIDE_COLOR}),
        ("closed", say("closed by a rule"), {"symbol": "diamond-open", "color": GUIDE_COLOR}),
    ]
    found = []
    for kind, name, style in kinds:
        ones = [twig for twig in twigs if twig.kind == kind and twig.place in at]
        if ones:
            sizes = [(11 if twig.step == step else 7) if twig.is_kept else 6 for twig in ones]
            edges = [2 if twig.step == step and twig.is_kept else 0.8 for twig in ones]
            found.append(_points(ones, at, name, {**style, "size": sizes,
                                                  "line": {"color": MARK_COLOR, "width": edges}}))  # fmt: skip
    return found


def _points(ones: Sequence[Twig], at: dict[int, tuple[float, float]], name: str, style: Spec) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "showlegend": bool(name),
        "x": [at[twig.place][0] for twig in ones],
        "y": [at[twig.place][1] for twig in ones],
        "customdata": [twig.place for twig in ones],
        "hovertext": [on_lines(bold(twig.piece), *map(literal, twig.numbers)) for twig in ones],
        "hovertemplate": hover("%{hovertext}"),
        "cliponaxis": False,
        "marker": style,
    }


def _names(twigs: Sequence[Twig], at: dict[int, tuple[float, float]], n_steps: int) -> list[Spec]:
    """The pieces beside their marks; where they are longer than a step they stand above and below in turns."""
    room = max(_LEAST_STEP, _PLOT / (n_steps + 1.4))
    kept = [twig for twig in twigs if twig.is_kept]
    longest = max((len(twig.piece) for twig in kept), default=0)
    in_turns = longest * _LETTER > room
    limit = max(3, int((2 if in_turns else 1) * room / _LETTER) - 1)
    above = [twig for twig in kept if not in_turns or twig.step % 2 == 0]
    below = [twig for twig in kept if in_turns and twig.step % 2]
    ends = [twig for twig in twigs if not twig.is_kept and twig.named and twig.place in at]
    groups = (
        (above, "top center", MARK_COLOR, -0.08),
        (below, "bottom center", MARK_COLOR, 0.08),
        (ends, "middle right", GUIDE_COLOR, 0.0),
    )
    return [_text(ones, at, side, colour, limit, lower) for ones, side, colour, lower in groups if ones]


def _text(
    ones: Sequence[Twig], at: dict[int, tuple[float, float]], side: str, colour: str, limit: int, lower: float
) -> Spec:
    return {
        "type": "scatter",
        "mode": "text",
        "x": [at[twig.place][0] for twig in ones],
        "y": [at[twig.place][1] + lower for twig in ones],
        "text": [literal(shortened(twig.piece, limit=limit)) for twig in ones],
        "textposition": side,
        "textfont": {**_FONT, "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
        "cliponaxis": False,
    }


def _leads(leaves: Sequence[Leaf], at: dict[int, tuple[float, float]], n_steps: int) -> list[Spec]:
    """Lines from where a result ended to where it is written out."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for leaf in leaves:
        x, y = at[leaf.place]
        xs += [x, n_steps + 0.7, None]
        ys += [y, y, None]
    style = {"color": TARGET_COLOR, "width": 1, "dash": "dot"}
    line = {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "line": style, "hoverinfo": "skip"}
    return [line | {"showlegend": False}] if leaves else []


def _results(leaves: Sequence[Leaf], at: dict[int, tuple[float, float]], n_steps: int) -> list[Spec]:
    if not leaves:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [n_steps + 0.8] * len(leaves),
            "y": [at[leaf.place][1] for leaf in leaves],
            "text": [on_lines(*_lines(n, leaf)) for n, leaf in enumerate(leaves, start=1)],
            "textposition": "middle right",
            "textfont": {"size": 11, "color": MARK_COLOR},
            "customdata": [leaf.place for leaf in leaves],
            "hovertext": [on_lines(bold(leaf.text), literal(leaf.numbers)) for leaf in leaves],
            "hovertemplate": hover("%{hovertext}"),
            "showlegend": False,
            "cliponaxis": False,
            "marker": {"symbol": "triangle-right", "size": 9, "color": TARGET_COLOR},
        }
    ]


def _lines(n: int, leaf: Leaf) -> list[str]:
    """A result with its number, on lines that are not much longer than `_LINE`."""
    lines = _wrapped(f"{n}. {leaf.text}")
    short = len(lines[-1]) + len(leaf.numbers) < _LINE
    end = joined(" ", [literal(lines.pop()), literal(leaf.numbers)]) if short else literal(leaf.numbers)
    return [*map(literal, lines), end]


def _wrapped(text: str) -> list[str]:
    """A text on lines, broken between words where there are such."""
    lines = [""]
    for word in text.split():
        while len(word) > _LINE:
            lines.append(word[:_LINE])
            word = word[_LINE:]
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _LINE:
            lines.append("")
        lines[-1] = " ".join(filter(None, (lines[-1], word)))
    return [line for line in lines if line]
