"""What runs for every visitor: the language, the page's frame and the list of pages."""

from pathlib import Path

from streamlit.navigation.page import StreamlitPage

from ui.frame.visitor import language_choice
from ui.glossary import glossary_page
from ui.server import measures
from ui.server.turns import DRAWING
from ui.shared import menu
from ui.shared.door import st
from ui.shared.page_blocks import around_page, page_blocks
from ui.state import apart
from words import say

ICON = Path(__file__).parent / "static" / "icon.svg"

apart.begin()
st.set_page_config(page_title=menu.NAME, page_icon=str(ICON), layout="wide")
for blocks in page_blocks():
    blocks.on_every_page()

# What stands under "" are entries of the menu by themselves, and so is a page alone; the others fold.
PAGES: dict[str, list[StreamlitPage]] = {
    "": [
        # Streamlit wants a page at "/"; the server sends browsers on to the same page under its own name.
        st.Page("pages/explore/start.py", title=menu.NAME, url_path="home", default=True, visibility="hidden"),
        st.Page("pages/explore/start.py", title=say("Start"), url_path="start"),
        st.Page("pages/explore/step.py", title=say("Step through decoding"), url_path="step"),
        st.Page("pages/explore/attention.py", title=say("Attention"), url_path="attention"),
    ],
    say("Inside"): [
        st.Page("pages/explore/inside.py", title=say("Inside the model"), url_path="inside"),
        st.Page("pages/explore/positions.py", title=say("Positions"), url_path="positions"),
        st.Page("pages/explore/masks.py", title=say("Masks"), url_path="masks"),
    ],
    say("Choosing"): [
        st.Page("pages/explore/search.py", title=say("How pieces are chosen"), url_path="search"),
        st.Page("pages/explore/forcing.py", title=say("Teacher forcing"), url_path="forcing"),
    ],
    say("What if"): [
        st.Page("pages/whatif/compare.py", title=say("Compare"), url_path="compare"),
        st.Page("pages/whatif/matters.py", title=say("What matters"), url_path="matters"),
        st.Page("pages/whatif/wrong.py", title=say("What goes wrong"), url_path="wrong"),
    ],
    say("Learn"): [
        st.Page("pages/learn/lessons.py", title=say("Lessons"), url_path="lessons"),
        st.Page("pages/learn/room.py", title=say("A room"), url_path="room"),
        st.Page("pages/learn/projector.py", title=say("A room"), url_path="projector", visibility="hidden"),
        st.Page("pages/learn/teachers.py", title=say("For teachers"), url_path="teachers"),
    ],
    say("My model"): [
        st.Page("pages/debug/open.py", title=say("Open a checkpoint"), url_path="open"),
        st.Page("pages/debug/doctor.py", title=say("Doctor"), url_path="doctor"),
        st.Page("pages/debug/training.py", title=say("Training"), url_path="training"),
        st.Page("pages/debug/checkpoints.py", title=say("Checkpoints"), url_path="checkpoints"),
        st.Page("pages/debug/sentences.py", title=say("A file of sentences"), url_path="sentences"),
        st.Page("pages/debug/corpus.py", title=say("Over a corpus"), url_path="corpus"),
    ],
    say("Glossary"): [st.Page("pages/explore/glossary.py", title=say("Glossary"), url_path="glossary")],
}

page = st.navigation(PAGES, position="hidden")
with measures.drawn(page.url_path), DRAWING.one():
    menu.begin(PAGES, page.url_path, language_choice)
    for blocks in page_blocks():
        blocks.above_page(page.url_path)
    glossary_page.underline()  # before the page, which may stop
    with around_page(page.url_path):
        page.run()
