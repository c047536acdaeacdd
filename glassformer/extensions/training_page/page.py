"""The page Training, with its place in the menu: curves, snapshots, a sentence over training, a training to watch."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

PAGES = (PageEntry(45, Path(__file__), say("Watch it learn"), path="training"),)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.training_page import training_panels
    from glassformer.extensions.training_page.training_pictures import ARRIVED, TRAINING
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import of_a_sentence
    from glassformer.state import session

    session.begin(TRAINING.path)
    session.arrive(ARRIVED)
    checkpoint = sidebar(TRAINING.title)
    of_a_sentence(TRAINING.title, checkpoint, training_panels.draw)
