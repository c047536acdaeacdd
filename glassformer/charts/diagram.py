"""Architecture diagram of a model: records of blocks, sub-layers, layers and stacks; the drawing, hover, links.

A single stack is in the middle. The line at the outer edge of a stack is the residual stream. A sub-layer branches
off, and its output is added to the stream at a plus; a norm is in the branch ("pre") or on the stream after the plus
("post"). Every block is a bar, so you can hover over it and click it anywhere.

Source: Vaswani et al. (2017), figure 1, which has the norms after the sums.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from glassformer.charts import grammar, theme
from glassformer.charts.hover import bold, on_lines, with_number
from glassformer.charts.theme import Spec, base_layout, literal
from transformer.i18n import say, through

Kind = Literal["attention", "cross", "linear", "norm", "table", "edge"]
Side = Literal["source", "target"]


@dataclass(frozen=True, kw_only=True)
class DiagramBlock:
    """One block, and its texts."""

    place: str  # comes back as `customdata` of a click
    text: str  # what is written in it, in one line or, that of a sub-layer, in two
    name: str  # its name out of context, such as "Encoder layer 1: self-attention"
    role: str  # one sentence
    shape: str  # shapes of what goes in and comes out
    parameters: int | None = None  # learned values; None where it has none by nature
    multiply_adds: int | None = None  # of one pass; None where none are counted
    leads_to: str  # where a click goes
    kind: Kind  # decides the colour


@dataclass(frozen=True)
class Sublayer:
    """Attention or feed-forward with its norm and its plus."""

    block: DiagramBlock
    norm: DiagramBlock
    plus: DiagramBlock


@dataclass(frozen=True)
class DiagramLayer:
    """A layer, or several equal layers drawn once; the name says which."""

    name: str
    sublayers: tuple[Sublayer, ...]


@dataclass(frozen=True)
class Stack:
    """Encoder or decoder, from the bottom up."""

    side: Side  # its colour and its place
    pre: bool  # norms are in the branches
    ids: DiagramBlock  # what it starts from
    mask: DiagramBlock  # what it starts from
    embedding: DiagramBlock  # what is looked up and what is added; None if nothing is
    positions: DiagramBlock | None  # what is looked up and what is added; None if nothing is
    layers: tuple[DiagramLayer, ...]  # the layers
    end: tuple[DiagramBlock, ...]  # what follows the layers: norms are on the stream


def hover_text(block: DiagramBlock) -> str:
    """The hover label of a block, in lines that fit a phone."""
    counts = ((say("Parameters"), block.parameters), (say("Multiply-adds"), block.multiply_adds))
    numbers = [with_number(name, f"{count:,}") for name, count in counts if count is not None]
    there = say("Click: {where}", where=literal(block.leads_to))
    return on_lines(bold(block.name), _wrapped(block.role), _wrapped(block.shape), *numbers, there)


@through
def _wrapped(text: str) -> str:
    return "<br>".join(map(literal, textwrap.wrap(text, 46)))


@through
def _lines(text: str) -> str:
    return "<br>".join(map(literal, text.split("\n")))


def block_table(blocks: Sequence[DiagramBlock]) -> dict[str, Any]:
    """The picture as a table: each block once."""
    rows: list[list[str | int | None]] = [
        [block.name, block.role, block.shape, block.parameters, block.multiply_adds] for block in dict.fromkeys(blocks)
    ]
    return {"columns": [say("Block"), say("Role"), say("Shape"), say("Parameters"), say("Multiply-adds")], "rows": rows}


HOW_TO_READ = say(
    "Read from the bottom up. At every plus, the stream x becomes x + f(x), where f is the block in the branch. "
    "The line between the stacks carries the encoder's output to every cross-attention sub-layer. Hover over a "
    "block for its sizes; click it to open its view."
)
HOW_TO_READ_ALONE = say(
    "Read from the bottom up. At every plus, the stream x becomes x + f(x), where f is the block in the branch. "
    "Hover over a block for its sizes; click it to open its view."
)

_BLOCK, _LINE, _NORM, _GAP, _LABEL = 26, 16, 15, 7, 17  # pixels; a block of two lines is a line higher
_LINE_WIDTH = 1.3


@dataclass
class _Column:
    """A stack as it is drawn from the bottom up; x goes from 0 to 100, y counts pixels from the bottom."""

    side: Side
    stream: float  # where the residual stream is
    outer: float  # the two ends of blocks
    inner: float
    edge: float  # and the outer one of those that the whole stream goes through
    y: float = _GAP  # how far it is drawn
    bars: list[tuple[DiagramBlock, Side, float, float, float, float]] = field(default_factory=list)
    pluses: list[tuple[DiagramBlock, Side, float, float]] = field(default_factory=list)
    shapes: list[Spec] = field(default_factory=list)
    notes: list[Spec] = field(default_factory=list)
    crossings: list[tuple[float, float]] = field(default_factory=list)

    def draw(self, stack: Stack) -> None:
        """Draw a stack."""
        self._inputs(stack)
        bottom = self.y - _GAP - _BLOCK / 2
        for layer in stack.layers:
            self._layer(layer, pre=stack.pre)
        reached = []
        for block in stack.end:
            reached += [self.y] * (block.kind != "norm")
            self._on_stream(block)
        self.line((self.stream, bottom), (self.stream, reached[0] - _GAP))
        self.line((self.stream, reached[0] - _GAP), (self.stream, reached[0]), arrow=True)
        for start in reached[1:]:  # what comes out of the last block does not belong to the stream
            middle = (self.edge + self.inner) / 2
            self.line((middle, start - _GAP), (middle, start), arrow=True)

    def _inputs(self, stack: Stack) -> None:
        """Ids and mask, the embedding and the positions that are added to it."""
        split = self.outer + 0.55 * (self.inner - self.outer)
        self._bar(stack.ids, (self.edge, split))
        self._bar(stack.mask, (split + (2 if self.side == "source" else -2), self.inner))
        middle = (self.edge + split) / 2
        self.y += _BLOCK + _GAP
        self.line((middle, self.y - _GAP), (middle, self.y), arrow=True)
        self.line((self.stream, self.y + _BLOCK), (self.stream, self.y + 2 * _BLOCK))
        self._on_stream(stack.embedding)
        if stack.positions is not None:
            self._bar(stack.positions)
            self._plus(stack.positions, self.outer, self.y + _BLOCK / 2)
            self.y += _BLOCK + _GAP

    def _layer(self, layer: DiagramLayer, *, pre: bool) -> None:
        bottom, left = self.y, self.side == "source"
        self.y += _GAP
        for sublayer in layer.sublayers:
            self._sublayer(sublayer, pre=pre)
        at = {"xanchor": "right" if left else "left", "yanchor": "bottom", "font": {"size": 12}, "borderpad": 0}
        self.notes.append(grammar.note(self.inner, self.y, literal(layer.name)) | at)
        self.y += _LABEL
        across = {"x0": self.edge, "x1": self.inner + (1 if left else -1), "y0": bottom, "y1": self.y}
        self.shapes.append({"type": "rect", "layer": "below", "line": grammar.edge(1, theme.MASK_LINE), **across})
        self.y += _GAP

    def _sublayer(self, sublayer: Sublayer, *, pre: bool) -> None:
        """The branch of one sub-layer, from where it leaves the stream to where it is added."""
        centre, start = (self.outer + self.inner) / 2, self.y
        self.y += _GAP
        if pre:
            self._bar(sublayer.norm, height=_NORM)
            self.y += _NORM + _GAP - 2
        self.line((self.stream, start), (centre, start), (centre, start + _GAP), arrow=True)
        height = _BLOCK + _LINE * sublayer.block.text.count("\n")
        self._bar(sublayer.block, height=height)
        if sublayer.block.kind == "cross":
            self.crossings.append((self.inner, self.y + height / 2))
        top = self.y + height + _GAP
        self.line((centre, self.y - _GAP), (centre, top))
        self._plus(sublayer.plus, centre, top)
        self.y = top + _GAP + 6
        if not pre:
            self._on_stream(sublayer.norm)

    def _on_stream(self, block: DiagramBlock) -> None:
        """A block that the whole stream goes through."""
        height = _NORM if block.kind == "norm" else _BLOCK
        self._bar(block, (self.edge, self.inner), height)
        self.y += height + _GAP

    def _bar(self, block: DiagramBlock, x: tuple[float, float] | None = None, height: float = _BLOCK) -> None:
        x0, x1 = sorted(x or (self.outer, self.inner))
        self.bars.append((block, self.side, x0, x1, self.y, self.y + height))

    def _plus(self, block: DiagramBlock, start: float, y: float) -> None:
        self.line((start, y), (self.stream + (1.6 if self.side == "source" else -1.6), y), arrow=True)
        self.pluses.append((block, self.side, self.stream, y))

    def line(self, *points: tuple[float, float], arrow: bool = False) -> None:
        """Join points; with an arrow at the last."""
        colour = grammar.SIDES[self.side][1]
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            ends = {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
            self.shapes.append({"type": "line", "layer": "below", "line": grammar.edge(_LINE_WIDTH, colour), **ends})
        if arrow:
            (ax, ay), (x, y) = points[-2:]
            refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
            head = {"showarrow": True, "arrowhead": 2, "arrowwidth": _LINE_WIDTH, "arrowcolor": colour, "text": ""}
            self.notes.append({"x": x, "y": y, "ax": ax, "ay": ay, **refs, **head})

    def lead(self, memory: DiagramBlock, crossings: Sequence[tuple[float, float]]) -> None:
        """Draw the way from the encoder's last block to every cross-attention."""
        y = next((y0 + y1) / 2 for block, *_, y0, y1 in self.bars if block is memory)
        heights = [y, *(height for _, height in crossings)]
        self.line((self.inner, y), (_BETWEEN, y))
        self.line((_BETWEEN, min(heights)), (_BETWEEN, max(heights)))
        for end, height in crossings:
            self.line((_BETWEEN, height), (end, height), arrow=True)


def _column(side: Side, *, alone: bool) -> _Column:
    """Where a stack stands: on its side, or in the middle."""
    places = (3, 8, 46, 0.4) if side == "source" else (97, 92, 54, 99.6)
    by = (25.0 if side == "source" else -25.0) * alone
    stream, outer, inner, edge = (place + by for place in places)
    return _Column(side, stream, outer, inner, edge)


_BETWEEN = 50  # where the memory goes up


def model_diagram_spec(*stacks: Stack, title: str) -> Spec:
    """Draw a model: the encoder, whose last block is the memory, and the decoder; or one of them.

    Blocks of kind "cross" are joined to the memory. A click on a block returns its `place`.
    """
    columns = [_column(stack.side, alone=len(stacks) == 1) for stack in stacks]
    for stack, column in zip(stacks, columns, strict=True):
        column.draw(stack)
    if crossings := columns[-1].crossings:
        columns[0].lead(stacks[0].end[-1], crossings)
    bars, pluses, shapes, notes = (
        [one for column in columns for one in getattr(column, name)] for name in ("bars", "pluses", "shapes", "notes")
    )
    height = max(column.y for column in columns) + _GAP
    layout = base_layout(title, "", "") | {"barmode": "overlay", "bargap": 0, "hovermode": "closest"}
    hidden = {"visible": False, "fixedrange": True}
    layout["xaxis"] = hidden | {"range": [0, 100]}
    layout["yaxis"] = hidden | {"range": [0, height]}
    layout |= {"height": int(height + 60), "shapes": shapes, "annotations": notes}
    layout["meta"] = {
        "fixed_height": True,  # drawn in pixels: squeezed into a window, its texts would overlap
        "table": block_table([one[0] for one in (*bars, *pluses)]),
    }
    read = HOW_TO_READ if len(stacks) > 1 else HOW_TO_READ_ALONE
    return {"data": [_bars(bars), _plus_marks(pluses)], "layout": layout, "how_to_read": read}


def with_links(figure: Spec, links: Mapping[str, str]) -> Spec:
    """A copy of the drawing in which a click opens the addresses of blocks, by their places."""
    layout = figure["layout"]
    return {**figure, "layout": {**layout, "meta": {**layout["meta"], "links": dict(links)}}}


def _colours(kind: Kind, side: Side) -> tuple[str, str]:
    """Of a block, and of its border."""
    if kind in ("norm", "edge"):
        return theme.MASK_COLOR, theme.MASK_LINE
    pale, full = grammar.SIDES[side]
    return pale if kind in ("attention", "cross") else str(theme.SCALES[side][0][1]), full


def _bars(bars: Sequence[tuple[DiagramBlock, Side, float, float, float, float]]) -> Spec:
    blocks, sides, x0, x1, y0, y1 = map(list, zip(*bars, strict=True))
    colours = [_colours(block.kind, side) for block, side in zip(blocks, sides, strict=True)]
    look = {
        "base": x0,
        "width": [high - low for low, high in zip(y0, y1, strict=True)],
        "text": [_lines(block.text) for block in blocks],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": [11 if block.kind == "norm" else 12.5 for block in blocks]},
        "marker": {"color": [fill for fill, _ in colours], "line": grammar.edge(1, [line for _, line in colours])},
    }
    widths = [right - left for left, right in zip(x0, x1, strict=True)]
    middles = [(low + high) / 2 for low, high in zip(y0, y1, strict=True)]
    return _said("lying", widths, middles, look, say("block"), blocks)


def _plus_marks(pluses: Sequence[tuple[DiagramBlock, Side, float, float]]) -> Spec:
    blocks, sides, x, y = map(list, zip(*pluses, strict=True))
    edges = grammar.edge(1.5, [grammar.SIDES[side][1] for side in sides])
    marker = {"symbol": "circle-cross", "size": 13, "color": theme.MASK_COLOR, "line": edges}
    return _said("markers", x, y, {"cliponaxis": False, "marker": marker}, say("plus"), blocks)


def _said(
    kind: grammar.Kind, x: Sequence[float], y: Sequence[float], look: Spec, name: str, blocks: Sequence[DiagramBlock]
) -> Spec:
    """Marks of blocks: hover says what each is, a click where it leads."""
    texts, clicks = [hover_text(block) for block in blocks], [block.place for block in blocks]
    return grammar.layer(kind, x, y, look, name=name, texts=texts, clicks=clicks)
