"""For teachers: a link for a class, a lesson on paper, lessons in one's own words."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.open_run import publish
from ui.shared import drawing
from ui.shared.door import st
from ui.state import session
from ui.teaching import teaching_panels
from words import say

session.begin("teachers")
TITLE = say("For teachers")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a choice runs this again, but not the controls around it."""
    drawing.notes(session.take_notes())
    teaching_panels.draw(checkpoint)
    publish(checkpoint)


of_a_sentence(TITLE, sidebar(TITLE), follow)
