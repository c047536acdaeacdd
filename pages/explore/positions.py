"""Positions: what gives the model order."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import controls, position_panels, state
from ui.session import open_run

state.begin("positions")
st.title("Positions")
checkpoint = controls.sidebar(shows_run=True)
source = controls.source_box(checkpoint)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, source)
    if run is None:
        return
    position_panels.draw(run)
    run.publish()


follow(checkpoint, source)
