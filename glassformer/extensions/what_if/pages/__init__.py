"""Menu entry of comparing."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
SECTION = say("What if")
PAGES = (PageEntry(40, HERE / "compare.py", say("Compare"), SECTION),)
