"""Says above a run what was changed inside the model for it, and offers the run without that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from transformer.runs.interventions import Intervention
from ui.runs.sides import KIND_NAMES
from ui.shared import drawing
from ui.shared.door import st
from ui.state import session
from ui.state.view import Slot
from words import joined, say, say_n

UNTOUCHED: Final = "untouched"
MOST_TOLD: Final = 3  # the banner is one line


def banner(changes: Sequence[Intervention], slot: Slot) -> None:
    """Draw what was changed, if anything was.

    Args:
        changes: Of the run that is shown.
        slot: Where it is drawn.
    """
    if not changes:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{slot}{UNTOUCHED}_row"):
        st.warning(drawing.plain(told(changes)), icon=":material/science:")
        st.button(say("Show the unchanged run"), key=f"{slot}{UNTOUCHED}", on_click=partial(session.untouched, slot))


def told(changes: Sequence[Intervention]) -> str:
    """What was changed, in words."""
    parts = [say("The model was changed for this run.")]
    for one in changes[:MOST_TOLD]:
        layer, head = one.layer + 1, one.head + 1
        kind = KIND_NAMES[one.kind]
        parts.append(say("{kind}, layer {layer}: head {head} writes nothing.", kind=kind, layer=layer, head=head))
    more = len(changes) - MOST_TOLD
    if more > 0:
        parts.append(say_n("So does {n} more head.", "So do {n} more heads.", more))
    return joined(" ", parts)
