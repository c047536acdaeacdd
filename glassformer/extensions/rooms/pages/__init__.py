"""Menu entries of rooms."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
SECTION = say("Teach or join a room")
PAGES = (
    PageEntry(51, HERE / "room.py", say("A room"), SECTION),
    PageEntry(52, HERE / "projector.py", say("A room"), SECTION, is_listed=False),
)
