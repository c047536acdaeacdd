"""Positions: what gives the model order."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import controls, position_controls, position_panels, state
from ui.session import open_run

state.begin("positions")
st.title("Positions", anchor=False)
checkpoint = controls.sidebar(shows_run=True)
source = controls.source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    table = position_controls.draw(checkpoint)
    run = open_run(checkpoint, source)  # what is not about the sentence shows without one
    position_panels.draw(table, run)
    if run is not None:
        run.publish()


follow(checkpoint, source)
