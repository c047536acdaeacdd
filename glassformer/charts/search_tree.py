"""A beam search as a tree that grows from left to right, one step at a time.

Lines that lead to a result are strong, those kept for a while thinner, and dropped ones are thin and dotted.
Partial outputs that hypotheses share appear once. Results are written out at the right.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, legend, stroke
from glassformer.charts.lanes import Growing, lanes
from glassformer.charts.search_marks import LEAST_STEP, Leaf, Places, Twig, lines_of, marks, names, results, start_mark
from glassformer.charts.theme import Spec, base_layout
from transformer.i18n import say

HOW_TO_READ = say(
    "Each step adds a piece, from left to right. Thick lines lead to results, thinner lines were kept for a while, "
    "and dotted lines were dropped immediately. Hover over a mark for its numbers; click it to open that partial "
    "output."
)
_KEPT_COLOR = theme.SCALES["target"][2][1]
_MARGIN = 226  # pixels at the right, for the results
_LINE_HEIGHT, _LANE, _LEAST_LANE = 14, 44, 26  # pixels
_MOST_HEIGHT = 560
_LEAST_WIDTH = 860  # the names of the lines stand in one row; a window of 1280 has more


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
    """Draw a search: all its partial outputs, and its results, best first, each at the end of one that was kept.

    `start` is drawn before the first step; there is room for `n_steps`. A click on a mark returns its name.
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
    layout = _layout(title, n_steps, n_lanes, n_lines=max((len(lines_of(1, leaf)) for leaf in leaves), default=1))
    if step is not None and step < n_steps:
        band = {"type": "rect", "x0": step + 0.5, "x1": step + 1.5, "yref": "paper", "y0": 0, "y1": 1}
        band |= {"fillcolor": theme.MASK_COLOR, "opacity": 0.6, "line": {"width": 0}, "layer": "below"}
        layout["shapes"] = [band]
    data = [
        *_edges(twigs, at, root, shown),
        *_leads(leaves, at, n_steps),
        start_mark(start, root),
        *marks(twigs, at, step),
        *names(twigs, at, n_steps),
        *results(leaves, at, n_steps),
    ]
    return {"data": data, "layout": layout}


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
    layout = base_layout(title, say("Step"), say("Partial outputs"))
    layout["xaxis"] |= {"range": [-0.6, n_steps + 0.8], "showgrid": False, "tickformat": "d"}
    layout["xaxis"] |= {"nticks": 12, "tick0": 1} | ({"dtick": 1} if n_steps <= 24 else {})
    layout["yaxis"] |= {"range": [n_lanes - 0.1, -0.8], "showgrid": False, "showticklabels": False, "ticks": ""}
    least = max(_LEAST_LANE, _LINE_HEIGHT * n_lines)
    lane = int(np.clip(_MOST_HEIGHT / n_lanes, least, max(_LANE, least)))
    legend(layout, 82)
    layout["margin"]["r"] = _MARGIN
    layout |= {"height": max(240, 136 + lane * n_lanes), "hovermode": "closest", "hoverdistance": 14}
    layout["meta"] = {
        "grounded": True,  # names lie on lines and marks
        "least_height": max(240, 126 + least * n_lanes),
        "least_width": max(_LEAST_WIDTH, int(_MARGIN + 40 + LEAST_STEP * (n_steps + 1.4))),
    }
    return layout


def _edges(
    twigs: Sequence[Twig], at: dict[int, tuple[float, float]], root: tuple[float, float], shown: int | None
) -> list[Spec]:
    """The lines: what was dropped, what was kept, what leads to a result, and the one that is looked at."""
    groups: list[tuple[str, list[Twig], Spec]] = [
        (say("dropped"), [], stroke(theme.GUIDE_COLOR, 1, "dot")),
        (say("kept for a while"), [], stroke(_KEPT_COLOR, 1.5)),
        (say("leads to a result"), [], stroke(theme.TARGET_COLOR, 2.5)),
        (say("the chosen result"), [], stroke(theme.MARK_COLOR, 4)),
    ]
    for twig in twigs:
        if twig.place in at:
            strength = (1 if twig.result is None else 3 if twig.result == shown else 2) if twig.is_kept else 0
            groups[strength][1].append(twig)
    return [_lines(_ends(ones, at, root), look, name) for name, ones, look in groups if ones]


def _ends(ones: Iterable[Twig], at: Places, root: tuple[float, float]) -> Iterable[tuple[float, ...]]:
    """Where the line to each begins and ends."""
    return ((*(root if one.parent is None else at[one.parent]), *at[one.place]) for one in ones)


def _lines(ends: Iterable[tuple[float, ...]], look: Spec, name: str | None = None) -> Spec:
    """Lines from point to point, with a gap after each."""
    parts = list(ends)
    x = [place for x0, _, x1, _ in parts for place in (x0, x1, None)]
    y = [place for _, y0, _, y1 in parts for place in (y0, y1, None)]
    return layer("lines", x, y, look, name=name)


def _leads(leaves: Sequence[Leaf], at: dict[int, tuple[float, float]], n_steps: int) -> list[Spec]:
    """Lines from where a result ended to where it is written out."""
    ends = [(x, y, n_steps + 0.7, y) for x, y in (at[leaf.place] for leaf in leaves)]
    return [_lines(ends, stroke(theme.TARGET_COLOR, 1, "dot") | {"showlegend": False})] if leaves else []
