"""The first rows of a page about maps that were given: its title, and what they are of."""

from __future__ import annotations

from typing import Final

from charts.theme import shortened
from transformer.maps.own_maps import GivenMaps
from ui.frame.source_box import head
from ui.shared import drawing
from ui.shared.door import st
from words import joined, say

LONGEST: Final = 160  # characters; the Checkpoints page has the whole text


def given_head(title: str, maps: GivenMaps) -> None:
    """Draw the title of a page, and under it the sentence and the model that the maps are of."""
    head(title)
    said = [say("Given maps, shown as they are; nothing is run here.")]
    if maps.checkpoint:
        said.append(say("Model: {name}.", name=shortened(maps.checkpoint, limit=LONGEST)))
    if maps.sentence:
        said.append(say("Sentence: {text}", text=shortened(maps.sentence, limit=LONGEST)))
    st.caption(drawing.plain(joined(" ", said)))
