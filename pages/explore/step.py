"""Step through decoding: a sentence becomes another one, piece by piece."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import controls, state, step_panels
from ui.session import open_run

state.begin("step")
st.title("Step through decoding")
checkpoint = controls.sidebar()
source = controls.source_box(checkpoint)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the run; a step runs this again, but not the controls around it."""
    run = open_run(checkpoint, source)
    if run is None:
        return
    step_panels.sentence(run)
    step_panels.results(run)
    left, right = st.columns([3, 2], gap="large")
    with left:
        step_panels.candidates(run)
    with right:
        step_panels.entropy(run)
    controls.attention_choice(checkpoint.config.n_decoder_layers, checkpoint.config.n_heads)
    left, right = st.columns([2, 3], gap="large")
    with left:
        step_panels.cross_row(run)
    with right:
        step_panels.cross_map(run)
    run.publish()


follow(checkpoint, source)
