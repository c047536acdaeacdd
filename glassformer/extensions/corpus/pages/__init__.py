"""Pages of the menu: a script each."""

from pathlib import Path

from ui.shared.page_list import MY_MODEL, PageEntry
from words import say

HERE = Path(__file__).parent
PAGES = (
    PageEntry(64, HERE / "sentences.py", say("A file of sentences"), MY_MODEL),
    PageEntry(65, HERE / "corpus.py", say("Over a corpus"), MY_MODEL),
)
