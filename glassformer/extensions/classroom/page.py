"""The page Lessons (what each teaches, how long it takes), and Plan and handouts, with their places in the menu."""

from pathlib import Path

from glassformer.extensions.rooms.page import SECTION
from glassformer.shared.page_blocks import PageEntry
from transformer.i18n import say

PAGES = (
    PageEntry(50, Path(__file__), say("Lessons"), path="lessons"),
    PageEntry(53, Path(__file__).with_name("teachers.py"), say("Plan and handouts"), SECTION),
)

if __name__ == "__main__":  # Streamlit runs this file; the list of pages only imports it
    from glassformer.extensions.classroom import panel
    from glassformer.frame.run_page import checkpoint_or_maps
    from glassformer.frame.source_box import head_without_run
    from glassformer.runs.run_address import publish
    from glassformer.state import session

    session.begin("lessons")
    head_without_run(say("Lessons"))
    found = checkpoint_or_maps()
    panel.draw_list()
    publish(found)
