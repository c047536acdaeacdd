"""What goes wrong: one mistake at a time, beside the run without it."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from ui.wrong import mistake_panels
from words import say

session.begin("wrong")
TITLE = say("What goes wrong")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen mistake; another one runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    cover.part(lambda: mistake_panels.draw(run))
    run.publish()


of_a_sentence(TITLE, sidebar(TITLE, shows_run=True), follow)
