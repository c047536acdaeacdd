"""The three ways on from the start page."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from transformer.model.anatomy import anatomy
from ui.runs.open_run import address
from ui.shared import menu, page_style
from ui.shared.door import st
from ui.state import session
from words import say


def draw(checkpoint: Checkpoint) -> None:
    """Draw a link for each."""
    link = session.asked()
    steps = say("Step through a translation") if checkpoint.card.source_code else say("Step through a run")
    with st.container(key=page_style.WAYS, horizontal=True):
        if anatomy(checkpoint.config).writes:
            menu.link("step", steps, address(checkpoint, link), icon=":material/play_circle:")
        menu.link("attention", say("Look at attention"), address(checkpoint, link), icon=":material/visibility:")
        menu.link(
            "checkpoints",
            say("Examine a checkpoint of your own"),
            address(checkpoint, link),
            icon=":material/folder_open:",
        )
