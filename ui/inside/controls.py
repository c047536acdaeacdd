"""The choice of a part of the Inside page."""

from __future__ import annotations

import streamlit as st

from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Kind
from ui.shared.choices import KEEP
from ui.state import keys

PARTS = {
    "model": "The model",
    "stream": "Residual stream",
    "lens": "Logit lens",
    "ffn": "Feed-forward",
    "pieces": "Embeddings",
}


def draw() -> None:
    """Draw it."""
    st.segmented_control(
        "Part",
        list(PARTS),
        key=keys.INSIDE_PANEL,
        format_func=lambda name: PARTS[name],
        required=True,
        persist_state=KEEP,
        label_visibility="collapsed",
    )


def deeper_stack(checkpoint: Checkpoint) -> Kind:
    """The attention of the stack with more layers: a layer that is looked at here may be of either stack."""
    config = checkpoint.config
    return "encoder" if config.n_encoder_layers > config.n_decoder_layers else "decoder"
