"""Part "Draft and check" of the page "How tokens are chosen": its entry, and its fields of the view."""

from glassformer.extensions.drafts.rounds import Kind
from glassformer.runs.picture import PartEntry
from glassformer.search import MOST_DRAWS
from glassformer.state.fields import MAX_LAYER, Look, choice, count, flag, integer
from transformer.i18n import say

PART = PartEntry(
    "drafts", say("Draft and check"), "glassformer.extensions.drafts.page.draft_panels:draw", page="search"
)


class DraftsLook(Look):
    """What is looked at of drafts."""

    draft: Kind = choice("draft", "bits")  # what drafts the output that the model checks
    draft_bits: int = integer("draft_bits", 8, 8)  # of each weight of such a draft
    draft_layers: int | None = integer("draft_layers", MAX_LAYER)  # of the decoder; None for the page's own choice
    ahead: int = count("ahead", MOST_DRAWS, 0)  # most pieces that a draft proposes at once; 0 for all
    with_drafts: bool = flag("with_drafts")  # drafts of a large model are made, too
