"""Menu entry of the page about a corpus."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(65, HERE / "corpus.py", say("Over a corpus"), MY_MODEL),)
