"""Inside: the parts of the loaded model, and what the rest of the forward pass did with the sentence."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import (
    controls,
    ffn_panels,
    inside_controls,
    inside_model_panels,
    lens_panels,
    piece_panels,
    state,
    step_panels,
    stream_panels,
)
from ui.session import open_run

DRAW = {
    "model": inside_model_panels.draw,
    "stream": stream_panels.draw,
    "lens": lens_panels.draw,
    "ffn": ffn_panels.draw,
    "pieces": piece_panels.draw,
}

state.begin("inside")
st.title("Inside the model", anchor=False)
checkpoint = controls.sidebar(shows_run=True)
source = controls.source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, source, kind=inside_controls.deeper_stack(checkpoint))
    if run is None:
        return
    step_panels.sentence(run, compact=True)
    inside_controls.draw()
    DRAW[run.view.inside_panel](run)
    run.publish()


follow(checkpoint, source)
