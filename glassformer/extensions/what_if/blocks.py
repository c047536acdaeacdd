"""What is around pages of changes inside the model: chips, the dialog that makes them, and "Compare this"."""

from glassformer.extensions.what_if import whatif
from glassformer.extensions.what_if.change_chips import ELSEWHERE, chips
from glassformer.extensions.what_if.comparing import of_what_is_looked_at
from glassformer.runs.open_run import OpenRun
from glassformer.shared import menu
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind

COMPARE = "compare"  # the path of the page


class WhatIfBlocks(PageBlocks):
    """See the module."""

    def under_entry(self, path: str, run: Link | None) -> tuple[Sentence, Link | None] | None:
        """The way to a comparison with what is looked at."""
        if path != COMPARE:
            return None
        leads_to = None if run is None or menu.current() == COMPARE else of_what_is_looked_at(run, menu.current())
        return say("Compare this"), leads_to

    def under_title(self) -> None:
        """What is changed, of a page without a run."""
        chips(session.standing(MAIN).interventions, MAIN, of_runs=ELSEWHERE)

    def in_source_row(self, checkpoint: Checkpoint) -> None:
        """The button that opens the dialog."""
        whatif.button(checkpoint)

    def above_run(self, link: Link, slot: Slot) -> None:
        """What is changed."""
        chips(link.interventions, slot)

    def for_head(self, run: OpenRun, kind: Kind, layer: int | None, head: int | None) -> None:
        """Take the head away, or change it otherwise."""
        whatif.for_head(run, kind, layer, head)


BLOCKS = WhatIfBlocks()
