"""Page script of Positions: the controls and the chosen part, with the run of the sentence if there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from glassformer.frame.run_page import sidebar
from glassformer.frame.source_box import of_a_sentence
from glassformer.positions import position_controls
from glassformer.positions.positions_page import PAGE
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import open_run
from glassformer.shared import cover_box
from glassformer.shared.i18n import st
from glassformer.state import session

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint

session.begin(PAGE.path)


@st.fragment
def follow(checkpoint: Checkpoint) -> None:
    """Draw the page; a click runs this again, but not the controls around it."""
    table = attempt(lambda: position_controls.draw(checkpoint))
    run = open_run(checkpoint)  # what is not about the sentence shows without one
    if table is not None:
        cover_box.part(lambda: PAGE.entry(table).draw(table, run))
    if run is not None:
        run.publish()


of_a_sentence(PAGE.title, sidebar(PAGE.title), follow)
