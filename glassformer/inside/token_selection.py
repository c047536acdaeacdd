"""The Inside page's record `INSIDE` with the list of its parts; the selected side, token and decoder row.

On the source side that is a piece, in the decoder the row of a step. A row of a decoder-only model's prompt belongs to
no step: it is selected as a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassformer.runs.map_axes import SIDE_OF
from glassformer.runs.picture import Page, PartEntry
from glassformer.runs.viewed_run import ViewedRun
from glassformer.state.view import Side
from transformer.i18n import say, say_n
from transformer.model.anatomy import Kind, StackName, anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

INSIDE = Page(
    "inside",
    say("Inside"),
    panel="inside_panel",
    entries=(
        PartEntry("model", say("The model"), "glassformer.inside.model.model_panel:draw", still=True),
        PartEntry("stream", say("Residual stream"), "glassformer.inside.stream_panel:draw"),
        PartEntry("lens", say("Logit lens"), "glassformer.inside.lens_panel:draw"),
        PartEntry("ffn", say("Feed-forward"), "glassformer.inside.ffn_panel:draw"),
        PartEntry("pieces", say("Embeddings"), "glassformer.inside.embeddings_panel:draw"),
        PartEntry("fast", say("Speed-ups"), "glassformer.inside.speedups_panel:draw"),
    ),
)


def deeper_stack(checkpoint: Checkpoint) -> Kind:
    """The attention of the stack with more layers: the selected layer may be of either stack."""
    stacks = reversed(anatomy(checkpoint.config).stacks)  # of two that are equal, the decoder
    return max(stacks, key=lambda stack: stack.n_layers).name


def sides_of(config: ModelConfig) -> list[Side]:
    """The sides of the stacks that a model has."""
    return [SIDE_OF[stack.name] for stack in anatomy(config).stacks]


def side_of(run: ViewedRun) -> Side:
    """The selected side, among those that the model has."""
    there = sides_of(run.checkpoint.config)
    return run.view.side if run.view.side in there else there[0]


def writes(run: ViewedRun, stack: StackName) -> bool:
    """Whether a stack is the one that writes: its vectors become logits."""
    parts = anatomy(run.checkpoint.config)
    return parts.writes and stack == parts.stacks[-1].name


def pieces_of(run: ViewedRun, side: Side) -> list[str]:
    """The tokens of a side that may be seen; of the output the rows "reads → predicts"."""
    return list(run.trace.src_tokens) if side == "source" else run.visible.row_labels()


def in_words(count: int, side: Side) -> str:
    """A number of tokens."""
    if side == "source":
        return say_n("{n:,} source token", "{n:,} source tokens", count)
    return say_n("{n:,} target token", "{n:,} target tokens", count)


def chosen_row(run: ViewedRun) -> int:
    """The selected row of the decoder: the current step's, or one of the prompt that was chosen."""
    query, first = run.view.query, run.trace.first_row
    return query if query is not None and query < first else run.trace.row_of(run.view.step)


def token_of(run: ViewedRun, side: Side, pieces: list[str]) -> int:
    """The selected token of a side."""
    return min(run.view.key or 0, len(pieces) - 1) if side == "source" else chosen_row(run)
