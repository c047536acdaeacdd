"""The page Compare and its menu entry: what is compared, both runs, their outputs, candidates and maps."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

SECTION = say("What if")
PAGES = (PageEntry(40, Path(__file__).with_name("compare.py"), say("Compare"), SECTION),)
