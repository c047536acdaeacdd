"""The choice of a part of the Inside page."""

from __future__ import annotations

from typing import Any

from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from transformer.runs.trace import Kind
from ui.frame.sentence import Still, one_token
from ui.inside.tokens import sides_of
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


def draw(run: OpenRun) -> Any:
    """Draw it in a row, which is returned: the part adds its own controls."""
    row = choices.bar(run.slot)
    with row:
        choices.choose(choices.field(run.slot, "inside_panel"), say("Part"), PARTS, bare=True)
    return row


def deeper_stack(checkpoint: Checkpoint) -> Kind:
    """The attention of the stack with more layers: a layer that is looked at here may be of either stack."""
    stacks = reversed(anatomy(checkpoint.config).stacks)  # of two that are equal, the decoder
    return max(stacks, key=lambda stack: stack.n_layers).name


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the model as such, and the source."""
    panel, sides = run.view.inside_panel, sides_of(run.checkpoint.config)
    if panel == "model":
        return Still()
    on_source = "target" not in sides or run.view.side == "source"
    return one_token(run, run.view.key or 0) if on_source and panel != "lens" else None
