"""The page Over a corpus: the choice of a corpus run, what it is of, and the chosen part."""

from __future__ import annotations

from transformer.checkpoint.load import Checkpoint
from ui.corpus.corpus_pictures import CORPUS
from ui.runs.show import choose_part
from ui.shared import choices
from ui.state.view import MAIN


def draw(checkpoint: Checkpoint) -> None:
    """Draw the page."""
    with choices.bar(MAIN):
        choose_part(CORPUS, MAIN)
