"""All pictures of all pages: whoever wants them by their keys imports this, and so the modules that declare them.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from ui.attention import head_pictures, map_pictures, one_weight_pictures
from ui.inside import lens_pictures, stream_pictures
from ui.masks import pictures as masks
from ui.matters import credit_pictures
from ui.matters import head_pictures as heads
from ui.runs.picture import PAGES, PICTURES
from ui.step import pictures as step

__all__ = ["PAGES", "PICTURES"]

_DECLARE = (
    step,
    map_pictures,
    one_weight_pictures,
    head_pictures,
    heads,
    credit_pictures,
    masks,
    stream_pictures,
    lens_pictures,
)
