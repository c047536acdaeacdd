"""Menu entry of the doctor."""

from pathlib import Path

from glassformer.shared.page_blocks import MY_MODEL, PageEntry
from transformer.i18n import say

HERE = Path(__file__).parent
PAGES = (PageEntry(61, HERE / "doctor.py", say("Doctor"), MY_MODEL),)
