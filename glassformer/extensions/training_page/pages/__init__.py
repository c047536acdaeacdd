"""Menu entry of training."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(62, HERE / "training.py", say("Training"), MY_MODEL),)
