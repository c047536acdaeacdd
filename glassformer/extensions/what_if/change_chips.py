"""Says above a run what was changed inside the model for it: one chip a change, which takes it back."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.view import Slot
from transformer.i18n import joined, say, say_n
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
