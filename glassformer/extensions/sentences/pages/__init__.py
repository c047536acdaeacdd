"""Menu entry of files of sentences."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(64, HERE / "sentences.py", say("A file of sentences"), MY_MODEL),)
