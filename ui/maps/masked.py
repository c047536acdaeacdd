"""Why cells of a map are closed.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from charts.tables import CLOSED
from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import Kind, anatomy
from words import Sentence, say


def mask_reason(checkpoint: Checkpoint | None, kind: Kind) -> Sentence:
    """Why the mask closes cells of an attention; of given maps only that it does is known."""
    if checkpoint is None:
        return CLOSED
    parts = anatomy(checkpoint.config)
    if not parts.attention(kind).causal:
        return say("closed by the mask: padding")
    if any(checkpoint.config.windows):
        return say("closed by the mask: comes later, or before the layer's window")
    if parts.reads:
        return say("closed by the mask: comes later in the output")
    return say("closed by the mask: comes later in the text")
