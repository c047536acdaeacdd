"""Pages of the menu: a script each."""

from pathlib import Path

from ui.shared.page_list import PageEntry
from words import say

HERE = Path(__file__).parent
SECTION = say("What if")
PAGES = (
    PageEntry(40, HERE / "compare.py", say("Compare"), SECTION),
    PageEntry(41, HERE / "matters.py", say("What matters"), SECTION),
    PageEntry(42, HERE / "wrong.py", say("What goes wrong"), SECTION),
)
