"""The choice of a part of the Inside page."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Kind
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.state.view import InsidePanel

PARTS: dict[InsidePanel, str] = {
    "model": "The model",
    "stream": "Residual stream",
    "lens": "Logit lens",
    "ffn": "Feed-forward",
    "pieces": "Embeddings",
}


def draw(run: OpenRun) -> None:
    """Draw it."""
    choices.choose(choices.field(run.slot, "inside_panel"), "Part", PARTS, bare=True)


def deeper_stack(checkpoint: Checkpoint) -> Kind:
    """The attention of the stack with more layers: a layer that is looked at here may be of either stack."""
    config = checkpoint.config
    return "encoder" if config.n_encoder_layers > config.n_decoder_layers else "decoder"
