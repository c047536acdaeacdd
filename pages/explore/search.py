"""How pieces are chosen: a beam search as a tree, sampling before the draw, and many draws of one sentence."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sentence_stepper import sentence
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.runs.attempt import attempt
from ui.runs.open_run import open_run
from ui.search import search_panels
from ui.search.search_pictures import SEARCH
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

session.begin(SEARCH.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the chosen part; a step or a click runs this again, but not the controls around it."""
    run = open_run(checkpoint, kind=SEARCH.kind(session.view()))
    if run is None:
        return
    sentence(run, compact=True)
    row = search_panels.choose(run)
    if row is not None:
        cover.part(lambda: attempt(lambda: search_panels.draw(run, row)))
    run.publish()


of_a_sentence(SEARCH.title, sidebar(SEARCH.title, shows_run=True), follow)
