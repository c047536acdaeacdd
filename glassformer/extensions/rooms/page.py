"""The page A room, where rooms are opened, joined and taught; places in the menu of it and of its projector view."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

SECTION = say("Teach or join a room")
PAGES = (
    PageEntry(51, Path(__file__), say("A room"), SECTION, path="room"),
    PageEntry(52, Path(__file__).with_name("projector.py"), say("A room"), SECTION, is_listed=False),
)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.rooms import room_panels, room_session
    from glassformer.frame.run_page import settle_defaults
    from glassformer.frame.source_box import head
    from glassformer.runs import loading
    from glassformer.runs.run_address import publish_unopened
    from glassformer.state import session

    session.begin("room")
    if not room_session.current() and (usable := loading.usable()):
        settle_defaults(usable)  # who opens a room has a class look at what a bare address means to them
    head(say("A room"))
    room_panels.draw()
    publish_unopened()
