"""Attention: every layer's and head's map of the sentence at hand, and how one weight came to be."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import (
    attention_controls,
    controls,
    flow_panels,
    head_panels,
    head_table_panels,
    overview_panels,
    state,
    step_panels,
    walk_panels,
)
from ui.session import open_run

DRAW = {
    "overview": overview_panels.draw,
    "head": head_panels.draw,
    "flow": flow_panels.draw,
    "walk": walk_panels.draw,
    "table": head_table_panels.draw,
}

state.begin("attention")
st.title("Attention", anchor=False)
checkpoint = controls.sidebar(shows_run=True)
source = controls.source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, source)
    if run is None:
        return
    step_panels.sentence(run, compact=True)
    attention_controls.draw(checkpoint)
    DRAW[run.view.panel](run)
    run.publish()


follow(checkpoint, source)
