"""The part "Draft and check" of the page "How pieces are chosen"."""

from glassformer.runs.picture import PartEntry
from transformer.i18n import say

PART = PartEntry("drafts", say("Draft and check"), "glassformer.extensions.drafts.page.drafting:draw", page="search")
