"""Pages of the menu: a script each."""

from pathlib import Path

from ui.shared.page_list import MY_MODEL, PageEntry
from words import say

HERE = Path(__file__).parent
PAGES = (PageEntry(62, HERE / "training.py", say("Training"), MY_MODEL),)
