"""All pictures of all pages: whoever wants them by their keys imports this, and so the modules that declare them.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from ui.attention import head_table_pictures, map_pictures, one_weight_pictures
from ui.checkpoints import checkpoint_pictures as checkpoints
from ui.doctor import parameter_pictures as doctor
from ui.forcing import forcing_pictures as forcing
from ui.inside import ffn_pictures, lens_pictures, model_pictures, pieces_pictures, stream_pictures
from ui.masks import mask_pictures as masks
from ui.matters import credit_pictures
from ui.matters import head_effect_pictures as heads
from ui.positions import sentence_pictures  # with those of tables and of attention
from ui.runs.picture import PAGES, PICTURES
from ui.search import search_pictures as search
from ui.step import step_pictures as step

__all__ = ["PAGES", "PICTURES"]

_DECLARE = (
    *(step, forcing, search),
    *(map_pictures, one_weight_pictures, head_table_pictures, heads, credit_pictures),
    *(masks, sentence_pictures),
    *(model_pictures, stream_pictures, lens_pictures, ffn_pictures, pieces_pictures),
    *(checkpoints, doctor),
)
