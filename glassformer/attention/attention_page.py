"""The page Attention: its parts, and what it calls each attention.

Knows nothing of Streamlit.
"""

from typing import Final

from glassformer.runs.picture import Page, PartEntry
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind

ATTENTION = Page(
    "attention",
    say("Attention"),
    panel="panel",
    entries=(
        PartEntry("overview", say("All heads"), "glassformer.attention.maps.maps_panel:all_heads"),
        PartEntry("head", say("One map"), "glassformer.attention.maps.maps_panel:one"),
        PartEntry("flow", say("Flow"), "glassformer.attention.flow.flow_panel:draw"),
        PartEntry("walk", say("One weight"), "glassformer.attention.one_weight.one_weight_panel:draw"),
        PartEntry(
            "table", say("What heads do"), "glassformer.attention.head_table.head_table_panel:draw", still=True
        ),
    ),
)
KINDS: Final[dict[Kind, Sentence]] = {
    "encoder": say("Encoder self"),
    "decoder": say("Decoder self"),
    "cross": say("Cross-attention"),
}
