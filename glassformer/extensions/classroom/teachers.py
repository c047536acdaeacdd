"""Page "Plan and handouts" for teachers: a link, a plan for a class, a handout, their own lessons."""

from glassformer.extensions.classroom import teaching_panels
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.runs.run_address import publish
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

TITLE = say("Plan and handouts")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a choice runs this again, but not the controls around it."""
    drawing.notes(session.take_notes())
    teaching_panels.draw(checkpoint)
    publish(checkpoint)


if __name__ == "__main__":
    session.begin("teachers")
    of_a_sentence(TITLE, sidebar(TITLE, of_run=True), follow)
