"""A graph of what a logit owes to what: tokens from left to right, depth from bottom to top, signed edges between.

An edge is drawn the thicker the more it matters: purple adds to the logit, green takes off. A dot in its middle takes
hover and clicks. A column has a token of each stack, whose labels are under its embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from glassformer.charts import theme
from glassformer.charts.attribution import LOGIT, adds_to_logit
from glassformer.charts.grammar import layer, note, stroke, table
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Colour, Spec, base_layout, literal, shortened, subtitle
from transformer.i18n import say

HOW_TO_READ = say(
    "Information flows from bottom to top, from embeddings to the output. A purple edge raises the logit, a green one "
    "lowers it; the thicker, the more paths go through it. Hover over the dot of an edge for its numbers; click it to "
    "cut the edge."
)
SHARE = say("Share of all paths")
_COLOURS: Final = {"source": theme.SOURCE_COLOR, "target": theme.TARGET_COLOR, "neutral": theme.GUIDE_COLOR}
_LESS = str(theme.SIGNED_SCALE[1][1])
_WIDTHS: Final = ((0.0, 0.7), (0.04, 1.4), (0.12, 2.6), (0.35, 4.5))  # from which share of the largest, pixels
_ROW, _COLUMN, _MARGIN = 54, 34, 100  # pixels
_MANY: Final = 14  # columns whose labels would run into each other if they lay


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
    layout |= {"height": int(_MARGIN + _ROW * (high - low)), "hovermode": "closest", "hoverdistance": 12}
    layout["meta"] = {"grounded": True, "least_width": _MARGIN + _COLUMN * n_columns}
    layout["meta"]["least_height"] = layout["height"]
    turned = {"textangle": -40 if n_columns > _MANY else 0, "font": {"size": 11}, "yanchor": "top", "yshift": -7}
    layout["annotations"] = [
        note(x, y, literal(shortened(token, limit=8))) | turned
        for y, tokens in labels
        for x, token in enumerate(tokens)
    ]
    columns = (say("From"), say("To"), LOGIT, SHARE)
    table(layout, columns, [[one.source.name, one.target.name, float(one.value), float(one.share)] for one in edges])
    nodes = list(dict.fromkeys(node for edge in edges for node in (edge.source, edge.target)))
    return {"data": [*_lines(edges, chosen), _dots(edges), _marks(nodes)] if edges else [], "layout": layout}


def _lines(edges: Sequence[GraphEdge], chosen: int | None) -> list[Spec]:
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
    x = [place for one in edges for place in (one.source.x, one.target.x, None)]
    y = [place for one in edges for place in (one.source.y, one.target.y, None)]
    return layer("lines", x, y, stroke(colour, width))


def _dots(edges: Sequence[GraphEdge]) -> Spec:
    """What takes hover and clicks of an edge."""
    texts = [
        on_lines(
            say("From {source}", source=bold(edge.source.name)),
            say("to {target}", target=bold(edge.target.name)),
            with_number(LOGIT, f"{edge.value:+.4g}"),
            with_number(SHARE, f"{edge.share:.2%}"),
        )
        for edge in edges
    ]
    marker = {"size": 5, "color": [theme.NEUTRAL_COLOR if one.value >= 0 else _LESS for one in edges]}
    x, y = ([(getattr(one.source, axis) + getattr(one.target, axis)) / 2 for one in edges] for axis in "xy")
    return layer("markers", x, y, {"marker": marker}, texts=texts, clicks=range(len(edges)))


def _marks(nodes: Sequence[GraphNode]) -> Spec:
    texts = [adds_to_logit(one.name, one.total) for one in nodes]
    marker = {"symbol": [one.symbol for one in nodes], "color": [_COLOURS[one.side] for one in nodes], "size": 8}
    look = {"marker": marker | {"line": {"color": theme.MARK_COLOR, "width": 0.8}}}
    return layer("markers", [one.x for one in nodes], [one.y for one in nodes], look, texts=texts)
