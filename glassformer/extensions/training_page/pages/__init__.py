"""Menu entry of training."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(45, HERE / "training.py", say("Watch it learn")),)
