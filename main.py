"""Per-session script: language, page layout, and the list of pages."""

from pathlib import Path

from glassformer.frame.run_page import language_choice
from glassformer.glossary import glossary_page
from glassformer.server.parts import drawn
from glassformer.server.render_lock import RENDER_LOCK
from glassformer.shared import menu
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import MY_MODEL, PageEntry, around_page, by_section, page_blocks
from glassformer.state import global_params
from transformer.i18n import say

ICON = Path(__file__).parent / "static" / "icon.svg"

global_params.begin()
st.set_page_config(page_title=menu.NAME, page_icon=str(ICON), layout="wide")
for blocks in page_blocks():
    blocks.on_every_page()

EXPLORE = Path("pages/explore")
TRANSLATE = say("Translate")
# The pages of a section are one entry of the menu, and tabs above the page; a page without one is an entry by itself.
OWN = [
    # Streamlit wants a page at "/"; the server sends browsers on to the same page under its own name. So it does with
    # "/start", which was a page of its own once.
    PageEntry(10, EXPLORE / "step.py", menu.NAME, path="home", is_listed=False, is_default=True),
    PageEntry(11, EXPLORE / "step.py", menu.NAME, path="start", is_listed=False),
    PageEntry(12, EXPLORE / "step.py", say("Step by step"), TRANSLATE),
    PageEntry(13, EXPLORE / "search.py", say("How tokens are chosen"), TRANSLATE),
    PageEntry(14, EXPLORE / "forcing.py", say("Teacher forcing"), TRANSLATE),
    PageEntry(20, EXPLORE / "attention.py", say("Attention")),
    PageEntry(21, EXPLORE / "positions.py", say("Positions")),
    PageEntry(22, EXPLORE / "masks.py", say("Masks")),
    PageEntry(23, EXPLORE / "inside.py", say("Inside")),
    PageEntry(63, Path("pages/debug/checkpoints.py"), say("Checkpoints"), MY_MODEL),
    PageEntry(70, EXPLORE / "glossary.py", say("Glossary")),
]
PAGES = by_section(OWN)

page = st.navigation(PAGES, position="hidden")
with drawn(page.url_path), RENDER_LOCK.one():
    menu.begin(PAGES, page.url_path, language_choice)
    for blocks in page_blocks():
        blocks.above_page(page.url_path)
    glossary_page.underline()  # before the page, which may stop
    with around_page(page.url_path):
        page.run()
