"""Compare: two runs beside each other, step by step, and what sets them apart."""

from transformer.checkpoint.load import Checkpoint
from ui.compare import compare_panels
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from words import say

session.begin("compare")
TITLE = say("Compare")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw both runs; a step runs this again, but not the controls around it."""
    cover.part(lambda: compare_panels.draw(checkpoint))


of_a_sentence(TITLE, sidebar(TITLE, shows_run=True), follow)
