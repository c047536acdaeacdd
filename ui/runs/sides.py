"""The rows and columns of an attention map: labels, ids, and whose they are.

Decoder rows are called "reads → predicts", as everywhere. In guess mode what comes after the current step is left
out.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from charts.theme import Colour
from transformer.model.anatomy import Anatomy, Kind, StackName, anatomy
from transformer.model.config import ModelConfig
from ui.runs.looking import Looking
from ui.state.view import Side, View
from words import say

KIND_NAMES: dict[Kind, str] = {
    "encoder": say("Encoder self-attention"),
    "decoder": say("Decoder self-attention"),
    "cross": say("Cross-attention"),
}
SIDES: dict[Side, str] = {"source": say("Source"), "target": say("Target")}
STACKS: dict[Side, StackName] = {"source": "encoder", "target": "decoder"}
SIDE_OF: dict[StackName, Side] = {stack: side for side, stack in STACKS.items()}
_WITHOUT: dict[Side, str] = {
    "source": say("The source side was asked for; this model has no encoder. The target side is shown."),
    "target": say("The target side was asked for; this model has no decoder. The source side is shown."),
}
SOURCE_ROWS = say("Source piece (query)")
SOURCE_COLUMNS = say("Source piece (key)")
TARGET_ROWS = say("Reads → predicts (query)")
TARGET_COLUMNS = say("Output piece read (key)")
PROMPT_COLUMNS = say("Piece read (key)")


def has_one_stack(config: ModelConfig) -> bool:
    """Whether a model has but one side, with the one table of embeddings."""
    return len(anatomy(config).stacks) == 1


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
    if kind == "cross":
        return Sides(rows, source, TARGET_ROWS, SOURCE_COLUMNS, row_ids, source_ids, "target", "source", looking.row)
    columns = PROMPT_COLUMNS if trace.first_row else TARGET_COLUMNS
    return Sides(
        rows, list(trace.read_pieces[:n]), TARGET_ROWS, columns, row_ids, row_ids, "target", "target", looking.row
    )


def fit_parts(view: View, parts: Anatomy) -> tuple[View, tuple[str, ...]]:
    """Look at an attention and at a side that a model has.

    Args:
        view: What was asked for.
        parts: Of the model.

    Returns:
        The view, and a note for each that there is not; of a default nobody asked for, nothing is said.
    """
    notes: list[str] = []
    kind, side = view.kind, view.side
    if kind not in parts.kinds:
        kind = parts.kinds[-1]
        if view.kind != View.kind:
            notes.append(
                say(
                    "{asked} was asked for; this model does not have it. {shown} is shown.",
                    asked=KIND_NAMES[view.kind],
                    shown=KIND_NAMES[kind],
                )
            )
    stacks = [stack.name for stack in parts.stacks]
    if STACKS[side] not in stacks:
        side = SIDE_OF[stacks[0]]
        if view.side != View.side:
            notes.append(_WITHOUT[view.side])
    return replace(view, kind=kind, side=side), tuple(notes)
