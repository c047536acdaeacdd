"""Masks: who may see whom, and why."""

import streamlit as st

from transformer.checkpoint import Checkpoint
from ui import controls, mask_panels, state
from ui.mask_batch import KINDS
from ui.session import open_run

state.begin("masks")
st.title("Masks", anchor=False)
checkpoint = controls.sidebar(shows_run=True)
source = controls.source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint, source: str) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, source, kind=KINDS[state.current().view.mask])
    if run is None:
        return
    mask_panels.draw(run)
    run.publish()


follow(checkpoint, source)
