"""Menu entries of the pages What matters and What goes wrong."""

from pathlib import Path

from glassformer.extensions.what_if.page import SECTION
from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (
    PageEntry(41, HERE / "matters.py", say("What matters"), SECTION),
    PageEntry(42, HERE / "wrong.py", say("What goes wrong"), SECTION),
)
