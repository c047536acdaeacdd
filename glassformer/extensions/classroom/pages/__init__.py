"""Menu entries of the pages Lessons, and Plan and handouts."""

from pathlib import Path

from glassformer.extensions.rooms.pages import SECTION
from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (
    PageEntry(50, HERE / "lessons.py", say("Lessons")),
    PageEntry(53, HERE / "teachers.py", say("Plan and handouts"), SECTION),
)
