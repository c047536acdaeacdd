"""All terms of the glossary.

Read `term` first; the terms stand in modules by what they are about, in the order in which one would explain them.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from ui.glossary import attention, class_room, decoding, layer_terms, model_terms, order_terms, text, training
from words import say

TERMS = (
    *text.TERMS,
    *model_terms.TERMS,
    *attention.TERMS,
    *order_terms.TERMS,
    *layer_terms.TERMS,
    *decoding.TERMS,
    *training.TERMS,
    *class_room.TERMS,
)

# For translators: phrases in which a word of the glossary means something else, so that it is not underlined.
APART = say(
    "arrow keys|last bit|output layer|shapes of the lines|output branches|in the branch|Shift+Enter|linear map|"
    "memory of this server",
    about="glossary",
)
