"""The choice of a part of the Inside page."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.runs.trace import Kind
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.state.view import InsidePanel
from words import say

PARTS: dict[InsidePanel, str] = {
    "model": say("The model"),
    "stream": say("Residual stream"),
    "lens": say("Logit lens"),
    "ffn": say("Feed-forward"),
    "pieces": say("Embeddings"),
}


def draw(run: OpenRun) -> None:
    """Draw it."""
    choices.choose(choices.field(run.slot, "inside_panel"), say("Part"), PARTS, bare=True)


def deeper_stack(checkpoint: Checkpoint) -> Kind:
    """The attention of the stack with more layers: a layer that is looked at here may be of either stack."""
    stacks = reversed(anatomy(checkpoint.config).stacks)  # of two that are equal, the decoder
    return max(stacks, key=lambda stack: stack.n_layers).name
