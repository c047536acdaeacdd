"""Masks: who may see whom, and why."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.masks import mask_panels
from ui.masks.scene import MASKS
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from words import say

session.begin(MASKS.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind=MASKS.kind(session.view()))
    if run is None:
        return
    trace = run.trace
    rows = {say("The sentence in pieces:"): trace.src_pieces, say("The decoder reads:"): trace.read_pieces}
    cover.part(lambda: mask_panels.draw(run), rows={said: pieces for said, pieces in rows.items() if pieces})
    run.publish()


of_a_sentence(MASKS.title, sidebar(MASKS.title, shows_run=True, folds=True), follow)
