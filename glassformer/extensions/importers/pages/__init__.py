"""Pages of the menu: a script each."""

from pathlib import Path

from ui.shared.page_list import MY_MODEL, PageEntry
from words import say

HERE = Path(__file__).parent
PAGES = (PageEntry(60, HERE / "open.py", say("Open a checkpoint"), MY_MODEL),)
