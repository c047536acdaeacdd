"""The controls of the Attention page."""

from __future__ import annotations

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import keys
from ui.controls import KEEP

PANELS = {
    "overview": "All heads",
    "head": "One head",
    "flow": "Flow",
    "walk": "One weight",
    "table": "What heads do",
}


def draw(checkpoint: Checkpoint) -> None:
    """Draw them."""
    st.session_state.setdefault(keys.PANEL, "overview")
    st.session_state.setdefault(keys.KIND, "cross")
    st.segmented_control(
        "Part", list(PANELS), key=keys.PANEL, format_func=lambda name: PANELS[name], required=True, persist_state=KEEP
    )
    st.segmented_control(
        "Attention", ["encoder", "decoder", "cross"], key=keys.KIND, required=True, persist_state=KEEP
    )
