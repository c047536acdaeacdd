"""The diagram of a model: encoder on the left, decoder on the right, both read from the bottom up.

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
    text: str  # what is written in it
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

_BLOCK, _NORM, _GAP, _LABEL = 26, 15, 7, 17  # pixels
_LINE_WIDTH = 1.3


@dataclass
class _Drawing:
    """The figure as it grows; x goes from 0 to 100, y counts pixels from the bottom."""

    bars: list[tuple[DiagramBlock, Side, float, float, float, float]] = field(default_factory=list)
    pluses: list[tuple[DiagramBlock, Side, float, float]] = field(default_factory=list)
    shapes: list[Spec] = field(default_factory=list)
    notes: list[Spec] = field(default_factory=list)
    crossings: list[tuple[float, float]] = field(default_factory=list)

    def line(self, *points: tuple[float, float], colour: str, arrow: bool = False) -> None:
        """Join points; with an arrow at the last."""
        style = {"color": colour, "width": _LINE_WIDTH}
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            ends = {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
            self.shapes.append({"type": "line", "layer": "below", "line": style, **ends})
        if arrow:
            (ax, ay), (x, y) = points[-2:]
            refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y"}
            head = {"showarrow": True, "arrowhead": 2, "arrowwidth": _LINE_WIDTH, "arrowcolor": colour, "text": ""}
            self.notes.append({"x": x, "y": y, "ax": ax, "ay": ay, **refs, **head})


@dataclass(frozen=True)
class _Column:
    """Where a stack stands: its stream, and the two ends of its blocks."""

    side: Side
    stream: float
    outer: float
    inner: float
    edge: float

    @property
    def alone(self) -> _Column:
        """The same stack in the middle."""
        by = 25.0 if self.side == "source" else -25.0
        return _Column(self.side, self.stream + by, self.outer + by, self.inner + by, self.edge + by)

    @property
    def centre(self) -> float:
        return (self.outer + self.inner) / 2

    @property
    def colour(self) -> str:
        return theme.SOURCE_COLOR if self.side == "source" else theme.TARGET_COLOR


_COLUMNS = {
    "source": _Column("source", stream=3, outer=8, inner=46, edge=0.4),
    "target": _Column("target", stream=97, outer=92, inner=54, edge=99.6),
}
_BETWEEN = 50  # where the memory goes up


def model_diagram_spec(*stacks: Stack, title: str) -> Spec:
    """Draw a model: the encoder, whose last block is the memory, and the decoder; or one of them.

    Blocks of kind "cross" are joined to the memory. A click on a block returns its `place`.
    """
    drawing = _Drawing()
    columns = [_COLUMNS[stack.side] if len(stacks) > 1 else _COLUMNS[stack.side].alone for stack in stacks]
    height = max(_stack(drawing, stack, column) for stack, column in zip(stacks, columns, strict=True)) + _GAP
    _memory(drawing, stacks[0].end[-1])
    layout = base_layout(title, "", "") | {"barmode": "overlay", "bargap": 0, "hovermode": "closest"}
    hidden = {"visible": False, "fixedrange": True}
    layout["xaxis"] = hidden | {"range": [0, 100]}
    layout["yaxis"] = hidden | {"range": [0, height]}
    layout |= {"height": int(height + 60), "shapes": drawing.shapes, "annotations": drawing.notes}
    layout["meta"] = {
        "fixed_height": True,  # drawn in pixels: squeezed into a window, its texts would overlap
        "table": block_table([*(bar[0] for bar in drawing.bars), *(plus[0] for plus in drawing.pluses)]),
    }
    read = HOW_TO_READ if len(stacks) > 1 else HOW_TO_READ_ALONE
    return {"data": [_bars(drawing), _plus_marks(drawing)], "layout": layout, "how_to_read": read}


def with_links(figure: Spec, links: Mapping[str, str]) -> Spec:
    """A copy of the drawing in which a click opens the addresses of blocks, by their places."""
    layout = figure["layout"]
    return {**figure, "layout": {**layout, "meta": {**layout["meta"], "links": dict(links)}}}


def _stack(drawing: _Drawing, stack: Stack, column: _Column) -> float:
    """Draw a stack; returns where it ends."""
    y = _inputs(drawing, stack, column)
    bottom = y - _GAP - _BLOCK / 2
    for layer in stack.layers:
        y = _layer(drawing, layer, column, y, pre=stack.pre)
    ends = []
    for block in stack.end:
        ends.append((block, y))
        y = _on_stream(drawing, block, column, y)
    reached = [start for block, start in ends if block.kind != "norm"]
    drawing.line((column.stream, bottom), (column.stream, reached[0] - _GAP), colour=column.colour)
    drawing.line((column.stream, reached[0] - _GAP), (column.stream, reached[0]), colour=column.colour, arrow=True)
    for start in reached[1:]:  # what comes out of the last block does not belong to the stream
        middle = (column.edge + column.inner) / 2
        drawing.line((middle, start - _GAP), (middle, start), colour=column.colour, arrow=True)
    return y


def _inputs(drawing: _Drawing, stack: Stack, column: _Column) -> float:
    """Ids and mask, the embedding and the positions that are added to it."""
    split, y = column.outer + 0.55 * (column.inner - column.outer), _GAP
    _bar(drawing, stack.ids, column, y, x=(column.edge, split))
    _bar(drawing, stack.mask, column, y, x=(split + (2 if column.side == "source" else -2), column.inner))
    middle = (column.edge + split) / 2
    drawing.line((middle, y + _BLOCK), (middle, y + _BLOCK + _GAP), colour=column.colour, arrow=True)
    y += _BLOCK + _GAP
    _bar(drawing, stack.embedding, column, y, x=(column.edge, column.inner))
    drawing.line((column.stream, y + _BLOCK), (column.stream, y + 2 * _BLOCK), colour=column.colour)
    y += _BLOCK + _GAP
    if stack.positions is None:
        return y
    _bar(drawing, stack.positions, column, y)
    _plus(drawing, stack.positions, column, y + _BLOCK / 2, start=column.outer)
    return y + _BLOCK + _GAP


def _layer(drawing: _Drawing, layer: DiagramLayer, column: _Column, y: float, *, pre: bool) -> float:
    bottom = y
    y += _GAP
    for sublayer in layer.sublayers:
        y = _sublayer(drawing, sublayer, column, y, pre=pre)
    left = column.side == "source"
    at = {"xanchor": "right" if left else "left", "yanchor": "bottom", "font": {"size": 12}, "borderpad": 0}
    drawing.notes.append(grammar.note(column.inner, y, literal(layer.name)) | at)
    y += _LABEL
    across = {"x0": column.edge, "x1": column.inner + (1 if left else -1), "y0": bottom, "y1": y}
    drawing.shapes.append({"type": "rect", "layer": "below", "line": grammar.edge(1, theme.MASK_LINE), **across})
    return y + _GAP


def _sublayer(drawing: _Drawing, sublayer: Sublayer, column: _Column, y: float, *, pre: bool) -> float:
    """The branch of one sub-layer, from where it leaves the stream to where it is added."""
    up = y + _GAP
    if pre:
        _bar(drawing, sublayer.norm, column, up, height=_NORM)
        up += _NORM + _GAP - 2
    top = up + _BLOCK
    stops = [(column.stream, y), (column.centre, y), (column.centre, y + _GAP)]
    drawing.line(*stops, colour=column.colour, arrow=True)
    _bar(drawing, sublayer.block, column, up)
    if sublayer.block.kind == "cross":
        drawing.crossings.append((column.inner, up + _BLOCK / 2))
    drawing.line((column.centre, up - _GAP), (column.centre, top + _GAP), colour=column.colour)
    _plus(drawing, sublayer.plus, column, top + _GAP, start=column.centre)
    y = top + 2 * _GAP + 6
    return y if pre else _on_stream(drawing, sublayer.norm, column, y)


def _on_stream(drawing: _Drawing, block: DiagramBlock, column: _Column, y: float) -> float:
    height = _NORM if block.kind == "norm" else _BLOCK
    _bar(drawing, block, column, y, x=(column.edge, column.inner), height=height)
    return y + height + _GAP


def _memory(drawing: _Drawing, memory: DiagramBlock) -> None:
    """The way from the encoder's last block to every cross-attention."""
    if not drawing.crossings:
        return
    x, y = next((_COLUMNS["source"].inner, (y0 + y1) / 2) for block, _, _, _, y0, y1 in drawing.bars if block is memory)
    heights = [y, *(height for _, height in drawing.crossings)]
    drawing.line((x, y), (_BETWEEN, y), colour=theme.SOURCE_COLOR)
    drawing.line((_BETWEEN, min(heights)), (_BETWEEN, max(heights)), colour=theme.SOURCE_COLOR)
    for end, height in drawing.crossings:
        drawing.line((_BETWEEN, height), (end, height), colour=theme.SOURCE_COLOR, arrow=True)


# ------------------------------------------------------------------------------------------------ marks


def _bar(
    drawing: _Drawing,
    block: DiagramBlock,
    column: _Column,
    y: float,
    *,
    x: tuple[float, float] | None = None,
    height: float = _BLOCK,
) -> None:
    x0, x1 = sorted(x or (column.outer, column.inner))
    drawing.bars.append((block, column.side, x0, x1, y, y + height))


def _plus(drawing: _Drawing, block: DiagramBlock, column: _Column, y: float, *, start: float) -> None:
    near = column.stream + (1.6 if column.side == "source" else -1.6)
    drawing.line((start, y), (near, y), colour=column.colour, arrow=True)
    drawing.pluses.append((block, column.side, column.stream, y))


def _colours(kind: Kind, side: Side) -> tuple[str, str]:
    """Of a block, and of its border."""
    if kind in ("norm", "edge"):
        return theme.MASK_COLOR, theme.MASK_LINE
    pale, full = grammar.SIDES[side]
    return pale if kind in ("attention", "cross") else str(theme.SCALES[side][0][1]), full


def _bars(drawing: _Drawing) -> Spec:
    blocks = [block for block, *_ in drawing.bars]
    fills, borders = zip(*(_colours(block.kind, side) for block, side, *_ in drawing.bars), strict=True)
    look = {
        "base": [x0 for _, _, x0, _, _, _ in drawing.bars],
        "width": [y1 - y0 for *_, y0, y1 in drawing.bars],
        "text": [literal(block.text) for block in blocks],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"size": [11 if block.kind == "norm" else 12.5 for block in blocks]},
        "marker": {"color": list(fills), "line": grammar.edge(1, list(borders))},
    }
    x = [x1 - x0 for _, _, x0, x1, _, _ in drawing.bars]
    return _said("lying", x, [(y0 + y1) / 2 for *_, y0, y1 in drawing.bars], look, say("block"), blocks)


def _plus_marks(drawing: _Drawing) -> Spec:
    colours = [_COLUMNS[side].colour for _, side, *_ in drawing.pluses]
    marker = {"symbol": "circle-cross", "size": 13, "color": theme.MASK_COLOR, "line": grammar.edge(1.5, colours)}
    look, blocks = {"cliponaxis": False, "marker": marker}, [block for block, *_ in drawing.pluses]
    x, y = [x for _, _, x, _ in drawing.pluses], [y for *_, y in drawing.pluses]
    return _said("markers", x, y, look, say("plus"), blocks)


def _said(
    kind: grammar.Kind, x: Sequence[float], y: Sequence[float], look: Spec, name: str, blocks: Sequence[DiagramBlock]
) -> Spec:
    """Marks of blocks: hover says what each is, a click where it leads."""
    texts, clicks = [hover_text(block) for block in blocks], [block.place for block in blocks]
    return grammar.layer(kind, x, y, look, name=name, texts=texts, clicks=clicks)
