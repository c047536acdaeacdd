"""Pages of the menu: a script each."""

from pathlib import Path

from ui.shared.page_list import PageEntry
from words import say

HERE = Path(__file__).parent
SECTION = say("Learn")
PAGES = (
    PageEntry(50, HERE / "lessons.py", say("Lessons"), SECTION),
    PageEntry(51, HERE / "room.py", say("A room"), SECTION),
    PageEntry(52, HERE / "projector.py", say("A room"), SECTION, is_listed=False),
    PageEntry(53, HERE / "teachers.py", say("For teachers"), SECTION),
)
