"""Masks: who may see whom, and why."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import sidebar
from ui.frame.source_box import source_box
from ui.masks import panels
from ui.masks.batch import KINDS
from ui.runs.open_run import open_run
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("masks")
st.title(say("Masks"), anchor=False)
checkpoint = sidebar(shows_run=True)
source_box(checkpoint, folded=True)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind=KINDS[session.view().mask])
    if run is None:
        return
    panels.draw(run)
    run.publish()


follow(checkpoint)
