"""Offers the checkpoint that reads what was typed, where the one at hand does not."""

from __future__ import annotations

from typing import Final

from transformer.checkpoint.load import Checkpoint
from ui.frame.scripts import reader
from ui.runs import loading
from ui.shared import drawing
from ui.shared.door import st
from ui.state import session
from words import say

OFFER: Final = "offer"


def offer(checkpoint: Checkpoint) -> None:
    """Draw the offer, if there is one to make."""
    text = st.session_state.get(session.SOURCE) or ""
    others = {name: entry for name, entry in loading.usable().items() if entry.language and name != checkpoint.name}
    found = reader(text, checkpoint.card.tried(), {name: entry.examples for name, entry in others.items()})
    if found is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{OFFER}_row"):
        said = say(
            "This looks like {language}, which this checkpoint does not read.", language=others[found].language
        )
        st.markdown(drawing.plain(said), width="content")
        taken = st.button(
            drawing.plain(say("Read it with {title}", title=others[found].title)),
            key=OFFER,
            icon=":material/swap_horiz:",
            on_click=session.read_with,
            args=(found, text),
        )
    if taken:
        st.rerun()  # the whole page: another checkpoint
