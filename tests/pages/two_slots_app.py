"""Two runs beside each other, as a comparison would draw them: the stepper, the step's panels and one map of each.

The second is a run of another checkpoint on a sentence of its own.
"""

import streamlit as st

from glassformer.attention.maps_panel import map_and_cell
from glassformer.frame.sentence_stepper import sentence
from glassformer.frame.sidebar import sidebar
from glassformer.frame.source_box import head, source_box
from glassformer.runs import loading
from glassformer.runs.open_run import open_run
from glassformer.shared import page_style
from glassformer.state import session
from glassformer.state.view import MAIN, SECOND
from glassformer.step import step_panels

st.set_page_config(layout="wide")
st.html(f"<style>{page_style.RULES}</style>")
session.begin("two")
st.session_state.setdefault(f"{SECOND}{session.SOURCE}", "I like coffee.")
row = head("Two")
checkpoint = sidebar()
source_box(checkpoint, row)


@st.fragment
def follow() -> None:
    for column, slot, name in zip(st.columns(2), (MAIN, SECOND), (checkpoint.name, "en-fr"), strict=True):
        with column:
            run = open_run(loading.open_checkpoint(loading.usable()[name]), kind="cross", slot=slot)
            if run is not None:
                sentence(run, compact=True)
                step_panels.parts(run)
                map_and_cell(run)
                run.publish()


follow()
