"""Page "What goes wrong": one mistake at a time, beside the run without it."""

from glassformer.extensions.effects import mistake_panels
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.runs.open_run import open_run
from glassformer.shared import cover_box
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

session.begin("wrong")
TITLE = say("What goes wrong")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen mistake; another one runs this again, but not the controls around it."""
    run = open_run(checkpoint)
    if run is None:
        return
    cover_box.part(lambda: mistake_panels.draw(run))
    run.publish()


of_a_sentence(TITLE, sidebar(TITLE), follow)
