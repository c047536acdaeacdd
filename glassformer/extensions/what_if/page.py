"""The page Compare, with its place in the menu: two runs side by side, and what differs between them."""

from pathlib import Path

from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

SECTION = say("What if")
PAGES = (PageEntry(40, Path(__file__), say("Compare"), SECTION, path="compare"),)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.what_if import compare_panels
    from glassformer.frame.run_page import sidebar
    from glassformer.frame.source_box import of_a_sentence
    from glassformer.shared import cover_box
    from glassformer.shared.i18n import st
    from glassformer.state import session
    from transformer.checkpoint.load import Checkpoint

    session.begin("compare")

    @st.fragment
    def follow(checkpoint: Checkpoint) -> None:
        """Draw both runs; a step reruns this, but not the controls around it."""
        cover_box.part(lambda: compare_panels.draw(checkpoint))

    of_a_sentence(PAGES[0].title, sidebar(PAGES[0].title), follow)
