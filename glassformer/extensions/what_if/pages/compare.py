"""Page "Compare": two runs side by side, step by step, and what differs between them."""

from glassformer.extensions.what_if.compare import compare_panels
from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.shared import cover_box
from glassformer.shared.i18n import st
from glassformer.state import session
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

session.begin("compare")
TITLE = say("Compare")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw both runs; a step reruns this, but not the controls around it."""
    cover_box.part(lambda: compare_panels.draw(checkpoint))


of_a_sentence(TITLE, sidebar(TITLE), follow)
