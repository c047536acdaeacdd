"""Step through decoding: a sentence becomes another one, piece by piece."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import controls, state, step_panels, style
from ui.session import open_run

state.begin("step")
st.title("Step through decoding", anchor=False)
checkpoint = controls.sidebar(shows_run=True, chooses_head=True)
source = controls.source_box(checkpoint)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the run; a step runs this again, but not the controls around it."""
    run = open_run(checkpoint, source, kind="cross")
    if run is None:
        return
    step_panels.sentence(run)
    step_panels.results(run)
    with st.container(key=style.STEP_GRID):
        step_panels.candidates(run)
        step_panels.entropy(run)
        step_panels.cross_row(run)
        step_panels.cross_map(run)
    run.publish()


follow(checkpoint, source)
