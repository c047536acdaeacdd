"""The rows and columns of an attention map: labels, ids, and whose they are.

Decoder rows are called "reads → predicts", as everywhere. In guess mode what comes after the current step is left
out.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from charts.theme import Colour
from transformer.runs.trace import Kind
from ui.runs.looking import Looking
from ui.state.view import Side

StackName = Literal["encoder", "decoder"]

KIND_NAMES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
SIDES: dict[Side, str] = {"source": "Source", "target": "Target"}
STACKS: dict[Side, StackName] = {"source": "encoder", "target": "decoder"}
SIDE_OF: dict[StackName, Side] = {stack: side for side, stack in STACKS.items()}
SOURCE_ROWS = "Source piece (query)"
SOURCE_COLUMNS = "Source piece (key)"
TARGET_ROWS = "Reads → predicts (query)"
TARGET_COLUMNS = "Output piece read (key)"


@dataclass(frozen=True)
class Sides:
    """What the axes of a map are; its array is `maps(kind)[..., : len(queries), : len(keys)]`.

    Attributes:
        queries, keys: A label for each row and column that may be seen.
        query_axis, key_axis: Names of the axes.
        query_ids, key_ids: Piece ids, for a decoder row the piece that it reads.
        query_side, key_side: Colours of the sides, "source" or "target".
        current: Row of the current step; None in the encoder.
    """

    queries: list[str]
    keys: list[str]
    query_axis: str
    key_axis: str
    query_ids: tuple[int, ...]
    key_ids: tuple[int, ...]
    query_side: Colour
    key_side: Colour
    current: int | None


def sides(looking: Looking, kind: Kind) -> Sides:
    """The axes of the maps of one kind.

    Args:
        looking: The run and what of it may be seen.
        kind: Which attention.
    """
    trace = looking.trace
    source, source_ids = list(trace.src_pieces), trace.src_ids
    if kind == "encoder":
        return Sides(
            source, source, SOURCE_ROWS, SOURCE_COLUMNS, source_ids, source_ids, "source", "source", current=None
        )
    rows, row_ids, n = looking.row_labels(), trace.read_ids[: looking.n_rows], looking.n_rows
    step = looking.view.step
    if kind == "cross":
        return Sides(rows, source, TARGET_ROWS, SOURCE_COLUMNS, row_ids, source_ids, "target", "source", step)
    return Sides(
        rows, list(trace.read_pieces[:n]), TARGET_ROWS, TARGET_COLUMNS, row_ids, row_ids, "target", "target", step
    )
