"""How pieces are chosen: a beam search as a tree, sampling before the draw, and many draws of one sentence."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.attempt import attempt
from ui.runs.open_run import open_run
from ui.search import controls, draws, sampling, tree
from ui.shared import cover
from ui.shared.door import st
from ui.state import session
from words import say

DRAW = {"tree": tree.draw, "sampling": sampling.draw, "draws": draws.draw}

session.begin("search")
TITLE = say("How pieces are chosen")


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind="cross")
    if run is None:
        return
    sentence(run, compact=True)
    row = controls.draw(run)
    if row is not None:
        cover.part(lambda: attempt(lambda: DRAW[run.view.search_panel](run, row)))
    run.publish()


of_a_sentence(TITLE, sidebar(TITLE, shows_run=True), follow)
