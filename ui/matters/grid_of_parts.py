"""Where each part of a logit stands: the decoder's places down, its components across."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from transformer.analysis.attribution.parts import Part
from transformer.model.anatomy import Kind, Sublayer, anatomy
from transformer.model.config import ModelConfig
from ui.matters.logit_words import part_name
from words import joined, say

_Column = tuple[str, Sublayer | None, int | None]
_ABOVE: Final[dict[Sublayer, str]] = {
    "self_attn": say("Self", about="attention, over its heads"),
    "cross_attn": say("Cross", about="attention, over its heads"),
}


@dataclass(frozen=True, eq=False)
class Grid:
    """The parts as a map."""

    rows: list[str]  # what they are called
    # What stands over each, on two lines: attention and head; the attention over its first head.
    columns: list[tuple[str, str]]
    values: np.ndarray  # `[row, column]`; NaN where there is no part. Several in one cell are added.
    names: list[list[str]]  # what is in each cell
    heads: dict[tuple[int, int], tuple[Kind, int, int]]  # the attention, layer and head of each cell that is a head

    def cell_of(self, kind: Kind, layer: int | None, head: int | None) -> tuple[int, int] | None:
        """The cell of a head, if it has one."""
        return next((cell for cell, found in self.heads.items() if found == (kind, layer, head)), None)


def grid_of(config: ModelConfig, parts: Sequence[Part], values: np.ndarray) -> Grid:
    """Arrange the parts.

    Args:
        config: Of the model.
        parts: The parts.
        values: What each adds [part].
    """
    n_layers = anatomy(config).stack("decoder").n_layers
    rows: list[str] = [say("Embedding"), *(say("Layer {n}", n=n + 1) for n in range(n_layers)), say("Output")]
    columns = _columns(config, n_heads=1 + max((part.head or 0 for part in parts), default=0))
    shown = np.full((len(rows), len(columns)), np.nan)
    names: list[list[list[str]]] = [[[] for _ in columns] for _ in rows]
    heads: dict[tuple[int, int], tuple[Kind, int, int]] = {}
    keys = list(columns)
    for part, value in zip(parts, values, strict=True):
        cell = _row(part, n_layers), keys.index(_column(part))
        shown[cell] = np.nan_to_num(shown[cell]) + value
        names[cell[0]][cell[1]].append(part_name(part))
        if part.stack_attention is not None and part.layer is not None and part.head is not None:
            heads[cell] = (part.stack_attention, part.layer, part.head)
    return Grid(rows, list(columns.values()), shown, [[joined(", ", cell) for cell in row] for row in names], heads)


def _columns(config: ModelConfig, *, n_heads: int) -> dict[_Column, tuple[str, str]]:
    """The columns by what stands in them."""
    found: dict[_Column, tuple[str, str]] = {}
    for part in anatomy(config).stack("decoder").sublayers:
        if part == "ffn":
            found["ffn", None, None] = (say("FFN"), "")
            continue
        for head in range(n_heads):
            found["head", part, head] = (_ABOVE[part] if head == 0 else "", str(head + 1))
    return found | {("other", None, None): (say("Other", about="parts of a sum"), "")}


def _column(part: Part) -> _Column:
    if part.kind == "head":
        return "head", part.sublayer, part.head
    return ("ffn", None, None) if part.kind == "ffn" else ("other", None, None)


def _row(part: Part, n_layers: int) -> int:
    if part.layer is not None:
        return part.layer + 1
    return n_layers + 1 if part.kind in ("final_norm", "output_bias") else 0
