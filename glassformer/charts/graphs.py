"""Charts of nodes and edges: a beam search as a tree (lanes, labels, results), the attribution graph of a logit.

In the tree, partial outputs that hypotheses share appear once, and results are written out at the right. A branch
begins where it leaves another and ends with its last node. Those that reach the edge are in order; any other takes the
nearest free lane, where no other branch is. In the graph of paths, a dot in the middle of an edge takes hover and
clicks. A column has a token of each stack, whose labels are under its embeddings.
"""

import textwrap
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from glassformer.charts import theme
from glassformer.charts.grammar import layer, legend, note, stroke, table
from glassformer.charts.hover import LOGIT, adds_to_logit, bold, on_lines, with_number
from glassformer.charts.theme import (
    GUIDE_COLOR,
    MARK_COLOR,
    TARGET_COLOR,
    Colour,
    Spec,
    base_layout,
    literal,
    shortened,
    subtitle,
)
from transformer.i18n import joined, say

Kind = Literal["open", "ended", "dropped", "closed"]
Places = Mapping[int | None, tuple[float, float]]
"""Where each beginning stands, by its name; that of none is where all begin."""

LEAST_STEP = 25  # pixels; with less the chart is wider than its place, and scrolls
_PLOT = 640  # pixels that a window of 1280 leaves for the steps
_FONT = {"size": 11, "family": "monospace"}  # pieces are written so in the sentence, too
_LETTER = 6.6  # pixels
_BESIDE: Spec = {"showlegend": False, "cliponaxis": False}
_LINE = 36  # letters in a line of a result


@dataclass(frozen=True)
class Twig:
    """One partial output in the tree."""

    place: int  # its name, which a click returns; parents come first
    parent: int | None  # that of what it continues; None for a first piece
    step: int  # of its last piece, from 0
    piece: str  # its last piece
    kind: Kind  # what became of it
    numbers: Sequence[str]  # what hover says beside its piece, line by line; not yet escaped
    result: int | None = None  # the best result that it leads to, from 0; None if it leads to none
    named: bool = True  # whether its piece is written beside it

    @property
    def is_kept(self) -> bool:
        """Whether its round kept it."""
        return self.kind in ("open", "ended")


@dataclass(frozen=True)
class Leaf:
    """A result."""

    place: int  # the name of its last beginning
    text: str  # what it says
    numbers: str  # its numbers in a few words


def marks(twigs: Sequence[Twig], at: Places, step: int | None) -> list[Spec]:
    """The marks, one trace per kind, because a shape shows what happened; they take hover and clicks."""
    kinds: list[tuple[Kind, str, Spec]] = [
        ("open", "", {"symbol": "circle", "color": TARGET_COLOR}),
        ("ended", say("ended"), {"symbol": "square", "color": TARGET_COLOR}),
        ("dropped", "", {"symbol": "x-thin-open", "color": GUIDE_COLOR}),
        ("closed", say("excluded by the model's settings"), {"symbol": "diamond-open", "color": GUIDE_COLOR}),
    ]
    found = []
    for kind, name, style in kinds:
        ones = [twig for twig in twigs if twig.kind == kind and twig.place in at]
        if not ones:
            continue
        sizes = [(11 if twig.step == step else 7) if twig.is_kept else 6 for twig in ones]
        edges = [2 if twig.step == step and twig.is_kept else 0.8 for twig in ones]
        marker = {**style, "size": sizes, "line": {"color": MARK_COLOR, "width": edges}}
        look = {"showlegend": bool(name), "cliponaxis": False, "marker": marker}
        x, y = ([at[twig.place][axis] for twig in ones] for axis in (0, 1))
        texts = [on_lines(bold(twig.piece), *map(literal, twig.numbers)) for twig in ones]
        found.append(layer("markers", x, y, look, name=name, texts=texts, clicks=[twig.place for twig in ones]))
    return found


def names(twigs: Sequence[Twig], at: Places, n_steps: int) -> list[Spec]:
    """The pieces next to their marks; if longer than a step, they alternate above and below."""
    room = max(LEAST_STEP, _PLOT / (n_steps + 1.4))
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
        (ends, "middle left", GUIDE_COLOR, 0.0),  # what is kept has its names at the right of them
    )
    found = []
    for ones, side, colour, lower in groups:
        look = {"textposition": side, "textfont": {**_FONT, "color": colour}, **_BESIDE}
        beside = "\u00a0" * (side == "middle left")  # such a text ends in the middle of its mark
        look["text"] = [literal(shortened(twig.piece, limit=limit)) + beside for twig in ones]
        x, y = [at[twig.place][0] for twig in ones], [at[twig.place][1] + lower for twig in ones]
        found += [layer("text", x, y, look)] if ones else []
    return found


def results(leaves: Sequence[Leaf], at: Places, n_steps: int) -> list[Spec]:
    """The results at the right, each a mark that takes clicks."""
    if not leaves:
        return []
    look = {"textposition": "middle right", "textfont": {"size": 11, "color": MARK_COLOR}, **_BESIDE}
    look |= {"marker": {"symbol": "triangle-right", "size": 9, "color": TARGET_COLOR}}
    look["text"] = [on_lines(*lines_of(n, leaf)) for n, leaf in enumerate(leaves, start=1)]
    x, y = [n_steps + 0.8] * len(leaves), [at[leaf.place][1] for leaf in leaves]
    texts = [on_lines(bold(leaf.text), literal(leaf.numbers)) for leaf in leaves]
    return [layer("markers+text", x, y, look, texts=texts, clicks=[leaf.place for leaf in leaves])]


def lines_of(n: int, leaf: Leaf) -> list[str]:
    """A result with its number, on lines not much longer than `_LINE`."""
    lines = textwrap.wrap(" ".join(f"{n}. {leaf.text}".split()), _LINE, break_on_hyphens=False)
    short = len(lines[-1]) + len(leaf.numbers) < _LINE
    end = joined(" ", [literal(lines.pop()), literal(leaf.numbers)]) if short else literal(leaf.numbers)
    return [*map(literal, lines), end]


_BEFORE, _AFTER = 0.9, 0.4  # steps that the edge to a branch's first node needs, and its last one


@dataclass(frozen=True)
class Growing:
    """What a node's lane depends on."""

    place: int  # its name; parents come before their children
    parent: int | None  # the name of the node that it continues; None for a first one
    step: int  # how far right it stands, from 0
    order: float  # what goes first among the children of a node: the smallest stays on its lane
    stays: bool = False  # whether its lane is kept free to the right edge, for what is written there


def lanes(nodes: Sequence[Growing]) -> dict[int, int]:
    """The lane of each node of a tree, from 0 at the top."""
    named = {node.place: node for node in nodes}
    taken: dict[int, list[tuple[float, float]]] = defaultdict(list)
    found: dict[int, int] = {}

    def urgency(branch: Sequence[int]) -> tuple[bool, float, int]:
        """What is placed first: branches to the edge in their order, then the others as they begin."""
        first, last = named[branch[0]], named[branch[-1]]
        return (False, last.order, first.step) if last.stays else (True, first.step, first.place)

    for n, branch in enumerate(sorted(_branches(nodes), key=urgency)):
        first, last = named[branch[0]], named[branch[-1]]
        end = float("inf") if last.stays else last.step + _AFTER
        beside = found.get(first.parent, 0) if first.parent is not None else 0
        lane = n if last.stays else _nearest(taken, beside, first.step, end)
        taken[lane].append((first.step - _BEFORE, end))
        found |= dict.fromkeys(branch, lane)
    top = min(found.values(), default=0)
    return {place: lane - top for place, lane in found.items()}


def _branches(nodes: Sequence[Growing]) -> list[list[int]]:
    """Runs of nodes that stay on one lane: from a node to the child that goes first, and on."""
    children: dict[int | None, list[Growing]] = defaultdict(list)
    for node in nodes:
        children[node.parent].append(node)
    heirs = {parent: min(ones, key=lambda one: one.order).place for parent, ones in children.items()}
    heads = [node for node in nodes if node.parent is None or heirs[node.parent] != node.place]
    found = []
    for head in heads:
        branch = [head.place]
        while branch[-1] in heirs:
            branch.append(heirs[branch[-1]])
        found.append(branch)
    return found


def _nearest(taken: Mapping[int, list[tuple[float, float]]], wanted: int, step: float, end: float) -> int:
    """The free lane nearest to the one that is wanted, below before above."""
    start = step - _BEFORE
    for away in range(len(taken) + 2):
        for lane in (wanted + away, wanted - away):
            if all(end < begun or over < start for begun, over in taken.get(lane, [])):
                return lane
    return wanted + len(taken) + 2


HOW_TO_READ = say(
    "Each step adds a token, from left to right. Thick lines lead to results, thinner lines were kept for a while, "
    "and dotted lines were dropped immediately. Hover over a mark for its numbers; click it to open that partial "
    "output."
)
_MARGIN = 226  # pixels at the right, for the results
_LINE_HEIGHT, _LANE, _LEAST_LANE = 14, 44, 26  # pixels
_LEAST_WIDTH = 860  # the names of the lines are in one row; a window of 1280 has more


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
    kept = [twig for twig in twigs if twig.is_kept]
    # On its parent's lane stays the way to the best result, else the better one.
    orders = [twig.result if twig.result is not None else 1e6 + twig.place for twig in kept]
    grown = [
        Growing(twig.place, twig.parent, twig.step, order, twig.place in ends)
        for twig, order in zip(kept, orders, strict=True)
    ]
    rows = lanes(grown)
    at: dict[int | None, tuple[float, float]] = {
        twig.place: (twig.step + 1.0, float(rows[twig.place])) for twig in kept
    }
    root = at[None] = (0.0, at[twigs[0].place][1] if twigs and twigs[0].place in at else 0.0)
    stubs, seen = dict[int | None, tuple[float, float]](), Counter[int | None]()
    for twig in twigs:  # what was dropped ends a little behind what it would have continued, one under the other
        if not twig.is_kept and twig.parent in at:
            seen[twig.parent] += 1
            x, y = at[twig.parent]
            stubs[twig.place] = (x + 0.62, y + 0.1 + 0.26 * seen[twig.parent])
    at |= stubs
    n_lanes = max(rows.values(), default=0) + 1
    layout = _layout(title, n_steps, n_lanes, n_lines=max((len(lines_of(1, leaf)) for leaf in leaves), default=1))
    if step is not None and step < n_steps:
        band = {"type": "rect", "x0": step + 0.5, "x1": step + 1.5, "yref": "paper", "y0": 0, "y1": 1}
        band |= {"fillcolor": theme.MASK_COLOR, "opacity": 0.6, "line": {"width": 0}, "layer": "below"}
        layout["shapes"] = [band]
    look = {"text": [literal(shortened(start, limit=8))], "textposition": "middle left", "textfont": _FONT, **_BESIDE}
    look |= {"marker": {"symbol": "circle-open", "size": 9, "color": MARK_COLOR}}
    # From where a result ended to where it is written out.
    leads = [(x, y, n_steps + 0.7, y) for x, y in (at[leaf.place] for leaf in leaves)]
    lead = stroke(theme.TARGET_COLOR, 1, "dot") | {"showlegend": False}
    data = [
        *_edges(twigs, at, shown),
        *([_lines(leads, lead)] if leaves else []),
        layer("markers+text", [root[0]], [root[1]], look),
        *marks(twigs, at, step),
        *names(twigs, at, n_steps),
        *results(leaves, at, n_steps),
    ]
    return {"data": data, "layout": layout}


def _layout(title: str, n_steps: int, n_lanes: int, *, n_lines: int) -> Spec:
    layout = base_layout(title, say("Step"), say("Partial outputs"))
    layout["xaxis"] |= {"range": [-0.6, n_steps + 0.8], "showgrid": False, "tickformat": "d"}
    layout["xaxis"] |= {"nticks": 12, "tick0": 1} | ({"dtick": 1} if n_steps <= 24 else {})
    layout["yaxis"] |= {"range": [n_lanes - 0.1, -0.8], "showgrid": False, "showticklabels": False, "ticks": ""}
    least = max(_LEAST_LANE, _LINE_HEIGHT * n_lines)
    lane = int(np.clip(560 / n_lanes, least, max(_LANE, least)))
    legend(layout, 82)
    layout["margin"]["r"] = _MARGIN
    layout |= {"height": max(240, 136 + lane * n_lanes), "hovermode": "closest", "hoverdistance": 14}
    layout["meta"] = {
        "grounded": True,  # names lie on lines and marks
        "least_height": max(240, 126 + least * n_lanes),
        "least_width": max(_LEAST_WIDTH, int(_MARGIN + 40 + LEAST_STEP * (n_steps + 1.4))),
    }
    return layout


def _edges(twigs: Sequence[Twig], at: Places, shown: int | None) -> list[Spec]:
    """The lines: what was dropped, what was kept, what leads to a result, and the selected one."""
    groups: list[tuple[str, list[tuple[float, ...]], Spec]] = [
        (say("dropped"), [], stroke(theme.GUIDE_COLOR, 1, "dot")),
        (say("kept for a while"), [], stroke(theme.SCALES["target"][2][1], 1.5)),
        (say("leads to a result"), [], stroke(theme.TARGET_COLOR, 2.5)),
        (say("the chosen result"), [], stroke(theme.MARK_COLOR, 4)),
    ]
    for twig in twigs:
        if twig.place in at:
            strength = (1 if twig.result is None else 3 if twig.result == shown else 2) if twig.is_kept else 0
            groups[strength][1].append((*at[twig.parent], *at[twig.place]))
    return [_lines(ends, look, name) for name, ends, look in groups if ends]


def _lines(ends: Sequence[tuple[float, ...]], look: Spec, name: str | None = None) -> Spec:
    """Lines from point to point, with a gap after each."""
    x = [place for x0, _, x1, _ in ends for place in (x0, x1, None)]
    y = [place for _, y0, _, y1 in ends for place in (y0, y1, None)]
    return layer("lines", x, y, look, name=name)


HOW_TO_READ_PATHS = say(
    "Information flows from bottom to top, from embeddings to the output. A purple edge raises the logit, a green one "
    "lowers it; the thicker, the more paths go through it. Hover over the dot of an edge for its numbers; click it to "
    "cut the edge."
)
SHARE = say("Share of all paths")
_COLOURS: Final = {"source": theme.SOURCE_COLOR, "target": theme.TARGET_COLOR, "neutral": theme.GUIDE_COLOR}
_LESS = str(theme.SIGNED_SCALE[1][1])
_WIDTHS: Final = ((0.0, 0.7), (0.04, 1.4), (0.12, 2.6), (0.35, 4.5))  # from which share of the largest, pixels
_ROW, _TOKEN, _AROUND = 54, 34, 100  # pixels


@dataclass(frozen=True)
class GraphNode:
    """A part at a token."""

    x: float  # its column, or a little beside it
    y: float  # its depth
    name: str  # what it is, on hover
    symbol: str  # Plotly's name of its mark
    side: Colour  # whose colour it has
    total: float  # what the logit owes to it


@dataclass(frozen=True)
class GraphEdge:
    """What one node reads of another."""

    source: GraphNode
    target: GraphNode
    value: float  # what it adds to the logit
    share: float  # of all paths that go through it


def path_graph_spec(
    edges: Sequence[GraphEdge],
    *,
    rows: Sequence[tuple[float, str]],
    labels: Sequence[tuple[float, Sequence[str]]],
    title: str,
    notes: Sequence[str] = (),
    chosen: int | None = None,
) -> Spec:
    """Draw edges with their nodes; a click on an edge returns its place.

    `notes` are written under the title; `rows` are depths with their names, `labels` depths with their tokens, one per
    column.
    """
    n_columns = max((len(tokens) for _, tokens in labels), default=1)
    layout = base_layout(title, "", "")
    subtitle(layout, notes)
    layout["xaxis"] |= {"range": [-0.7, n_columns - 0.3], "visible": False, "fixedrange": True}
    low, high = min(y for y, _ in rows) - 0.5, max(y for y, _ in rows) + 0.5
    layout["yaxis"] |= {"range": [low, high], "showgrid": False, "fixedrange": True, "zeroline": False, "ticks": ""}
    layout["yaxis"] |= {"tickmode": "array", "tickvals": [y for y, _ in rows], "ticktext": [name for _, name in rows]}
    layout |= {"height": int(_AROUND + _ROW * (high - low)), "hovermode": "closest", "hoverdistance": 12}
    layout["meta"] = {"grounded": True, "least_width": _AROUND + _TOKEN * n_columns}
    layout["meta"]["least_height"] = layout["height"]
    turned = {"textangle": -40 if n_columns > 14 else 0, "font": {"size": 11}, "yanchor": "top", "yshift": -7}
    layout["annotations"] = [
        note(x, y, literal(shortened(token, limit=8))) | turned
        for y, tokens in labels
        for x, token in enumerate(tokens)
    ]
    columns = (say("From"), say("To"), LOGIT, SHARE)
    table(layout, columns, [[one.source.name, one.target.name, float(one.value), float(one.share)] for one in edges])
    nodes = list(dict.fromkeys(node for edge in edges for node in (edge.source, edge.target)))
    return {"data": [*_weighed(edges, chosen), _dots(edges), _nodes(nodes)] if edges else [], "layout": layout}


def _weighed(edges: Sequence[GraphEdge], chosen: int | None) -> list[Spec]:
    """The edges, the weakest first; one layer for each width and sign."""
    most = max(edge.share for edge in edges)
    found = []
    for n, (least, width) in enumerate(_WIDTHS):
        end = _WIDTHS[n + 1][0] if n + 1 < len(_WIDTHS) else np.inf
        for colour, raises in ((_LESS, False), (theme.NEUTRAL_COLOR, True)):
            some = [one for one in edges if least <= one.share / most < end and (one.value >= 0) == raises]
            found += [_drawn(some, colour, width) | {"opacity": 0.45 + 0.15 * n}] if some else []
    return [*found, _drawn([edges[chosen]], theme.MARK_COLOR, 5)] if chosen is not None else found


def _drawn(edges: Sequence[GraphEdge], colour: str, width: float) -> Spec:
    return _lines([(one.source.x, one.source.y, one.target.x, one.target.y) for one in edges], stroke(colour, width))


def _dots(edges: Sequence[GraphEdge]) -> Spec:
    """What takes hover and clicks of an edge."""
    texts = []
    for edge in edges:
        ends = say("From {source}", source=bold(edge.source.name)), say("to {target}", target=bold(edge.target.name))
        numbers = with_number(LOGIT, f"{edge.value:+.4g}"), with_number(SHARE, f"{edge.share:.2%}")
        texts.append(on_lines(*ends, *numbers))
    marker = {"size": 5, "color": [theme.NEUTRAL_COLOR if one.value >= 0 else _LESS for one in edges]}
    x, y = ([(getattr(one.source, axis) + getattr(one.target, axis)) / 2 for one in edges] for axis in "xy")
    return layer("markers", x, y, {"marker": marker}, texts=texts, clicks=range(len(edges)))


def _nodes(nodes: Sequence[GraphNode]) -> Spec:
    texts = [adds_to_logit(one.name, one.total) for one in nodes]
    marker = {"symbol": [one.symbol for one in nodes], "color": [_COLOURS[one.side] for one in nodes], "size": 8}
    look = {"marker": marker | {"line": {"color": theme.MARK_COLOR, "width": 0.8}}}
    return layer("markers", [one.x for one in nodes], [one.y for one in nodes], look, texts=texts)
