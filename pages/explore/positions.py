"""Positions: what gives the model order."""

from transformer.checkpoint.load import Checkpoint
from ui.frame.sidebar import sidebar
from ui.frame.source_box import of_a_sentence
from ui.positions import position_controls as position_controls
from ui.positions import position_panels
from ui.positions.table_pictures import PAGE
from ui.runs.attempt import attempt
from ui.runs.open_run import open_run
from ui.shared import cover
from ui.shared.door import st
from ui.state import session

session.begin(PAGE.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    table = attempt(lambda: position_controls.draw(checkpoint))
    run = open_run(checkpoint)  # what is not about the sentence shows without one
    if table is not None:
        cover.part(lambda: position_panels.draw(table, run))
    if run is not None:
        run.publish()


of_a_sentence(PAGE.title, sidebar(PAGE.title, shows_run=True, folds=True), follow)
