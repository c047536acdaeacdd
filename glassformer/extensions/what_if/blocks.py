"""What is around pages of changes inside the model: chips, the dialog that makes them, and "Compare this"."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from glassformer.extensions.what_if import whatif
from glassformer.extensions.what_if.comparing import of_what_is_looked_at
from glassformer.runs.open_run import OpenRun
from glassformer.shared import drawing, menu
from glassformer.shared.door import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import session
from glassformer.state.link import Link
from glassformer.state.view import MAIN, Slot
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import Sentence, joined, say, say_n
from transformer.model.anatomy import Kind
from transformer.runs.interventions import Intervention

CHANGES: Final = "changes"
UNTOUCHED: Final = "untouched"
MOST_CHIPS: Final = 8  # more would fill the page
MOST_TOLD: Final = 3
HERE: Final = say("**Changed in this run:**")
ELSEWHERE: Final = say("**Changed on pages that show a run:**")


def chips(changes: Sequence[Intervention], slot: Slot, *, of_runs: str = HERE) -> None:
    """Draw what is changed, if anything is, after a text that says where; a click on a change takes it back."""
    if not changes:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{slot}{CHANGES}"):
        st.markdown(of_runs, width="content")
        for place, one in enumerate(changes[:MOST_CHIPS]):
            st.button(
                drawing.plain(one.told()),
                key=f"{slot}{CHANGES}_{place}",
                icon=":material/close:",
                help=say("Undo this change."),
                on_click=partial(session.change, slot, tuple(other for other in changes if other != one)),
            )
        more = len(changes) - MOST_CHIPS
        if more > 0:
            st.markdown(say_n("and {n} more", "and {n} more", more), width="content")
        st.button(
            say("Show the unchanged run"),
            key=f"{slot}{UNTOUCHED}",
            type="tertiary",
            on_click=partial(session.change, slot, ()),
        )


def told(changes: Sequence[Intervention]) -> str:
    """What was changed, in words."""
    parts = [say("The model was changed for this run.")]
    parts += [say("{change}.", change=one.told()) for one in changes[:MOST_TOLD]]
    more = len(changes) - MOST_TOLD
    if more > 0:
        parts.append(say_n("And {n} more change.", "And {n} more changes.", more))
    return joined(" ", parts)


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
