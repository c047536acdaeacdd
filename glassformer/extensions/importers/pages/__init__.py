"""Menu entry of opening models."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(60, HERE / "open.py", say("Open a checkpoint"), MY_MODEL),)
