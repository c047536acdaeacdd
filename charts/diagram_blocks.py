"""What a diagram of a model is made of: blocks, and what is said of each in its hover label and in a table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from charts.hover import bold, on_lines
from charts.theme import literal
from words import say, through

Kind = Literal["attention", "cross", "linear", "norm", "table", "edge"]
Side = Literal["source", "target"]

_HOVER_LETTERS = 46


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block, and what is said of it."""

    place: str  # comes back as `customdata` of a click
    text: str  # what is written in it
    name: str  # what it is called where it stands alone, such as "Encoder layer 1: self-attention"
    role: str  # one sentence
    shape: str  # shapes of what goes in and comes out
    parameters: int | None = None  # learned values; None where it has none by nature
    multiply_adds: int | None = None  # of one pass; None where none are counted
    leads_to: str  # where a click goes
    kind: Kind  # decides the colour


@dataclass(frozen=True)
class Sublayer:
    """Attention or feed-forward with its norm and its plus."""

    block: Block
    norm: Block
    plus: Block


@dataclass(frozen=True)
class Layer:
    """A layer, or several equal ones drawn once; the name says which."""

    name: str
    sublayers: tuple[Sublayer, ...]


@dataclass(frozen=True)
class Stack:
    """Encoder or decoder, from the bottom up."""

    side: Side  # its colour and its place
    pre: bool  # norms stand in the branches
    ids: Block  # what it starts from
    mask: Block  # what it starts from
    embedding: Block  # what is looked up and what is added; None if nothing is
    positions: Block | None  # what is looked up and what is added; None if nothing is
    layers: tuple[Layer, ...]  # the layers
    end: tuple[Block, ...]  # what follows the layers: norms stand on the stream


def hover_text(block: Block) -> str:
    """The hover label of a block, in lines that a phone has room for."""
    lines = [bold(block.name)]
    lines += [_wrapped(block.role), _wrapped(block.shape)]
    if block.parameters is not None:
        lines.append(say("Parameters: {n:,}", n=block.parameters))
    if block.multiply_adds is not None:
        lines.append(say("Multiply-adds: {n:,}", n=block.multiply_adds))
    return on_lines(*lines, say("Click: {where}", where=literal(block.leads_to)))


@through
def _wrapped(text: str) -> str:
    """A text in short lines."""
    return "<br>".join(map(literal, textwrap.wrap(text, _HOVER_LETTERS)))


def block_table(blocks: Sequence[Block]) -> dict[str, Any]:
    """What stands for the picture in a table: each block once."""
    rows: list[list[str | int | None]] = [
        [block.name, block.role, block.shape, block.parameters, block.multiply_adds]
        for block in dict.fromkeys(blocks)
    ]
    return {
        "columns": [say("Block"), say("Role"), say("Shape"), say("Parameters"), say("Multiply-adds")],
        "rows": rows,
    }
