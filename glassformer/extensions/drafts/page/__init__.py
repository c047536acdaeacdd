"""What drafts add to the page How pieces are chosen: the part Draft and check."""

from glassformer.runs.picture import PartEntry
from transformer.i18n import say

PART = PartEntry("drafts", say("Draft and check"), "glassformer.extensions.drafts.page.drafting:draw", page="search")
