"""The box for the reference, and what may be taken for one with a click."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.model.anatomy import anatomy
from ui.forcing.pictures import reference_of
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.door import st
from ui.state import reference, session
from ui.state.view import Slot
from words import say

BOX: Final = "reference_box"
OWN: Final = "reference_own"
OF_CARD: Final = "reference_of_card"
NONE: Final = "reference_none"
BOX_WIDTH: Final = 480  # pixels; what stands beside it goes below it where there is no room


def draw(run: OpenRun) -> None:
    """Draw the box with the reference, and the buttons beside it."""
    key, source = run.key(BOX), run.trace.query.source
    shown, card = reference_of(run) or "", run.checkpoint.card.reference_of(source)
    if st.session_state.get(key) != shown:
        st.session_state[key] = shown
    reads = anatomy(run.checkpoint.config).reads
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input(
            say("Reference: the right output") if reads else say("Reference: what should follow the prompt"),
            key=key,
            on_change=partial(_take_typed, run.slot, key, run.link.source),
            placeholder=say("Type the right output, then press Enter"),
            width=BOX_WIDTH,
        )
        own = run.trace.output_text.strip()
        if own and own != shown:
            _offer(run, OWN, say("Take the model's own output"), run.trace.output_text)
        if card and shown != card:
            _offer(run, OF_CARD, say("Take the card's"), "", tip=card)
        if not reads and shown:
            _offer(run, NONE, say("Judge the prompt itself"), "")
    if not reads:
        choices.switch(
            choices.field(run.slot, "ends"),
            say("The text ends there"),
            help=say("Then the end mark after it is judged, too."),
        )


def _offer(run: OpenRun, name: str, label: str, text: str, *, tip: str = "") -> None:
    """Draw a button that takes a text; an empty one stands for none of the reader's own."""
    st.button(
        label,
        key=run.key(name),
        help=drawing.plain(tip or text) or None,
        on_click=partial(_take, run.slot, run.link.source, text),
    )


def _take_typed(slot: Slot, key: str, source: str | None) -> None:
    _take(slot, source, st.session_state[key])


def _take(slot: Slot, source: str | None, text: str) -> None:
    """Callback: this is the reference now, and its first piece is looked at."""
    reference.keep(source, text)
    session.replace(slot, at=None)
    session.stand(slot, notes=())
