"""What runs for every visitor: the language, the page's frame and the list of pages."""

from pathlib import Path

from streamlit.navigation.page import StreamlitPage

from ui.components.present.present_view import presenter
from ui.frame.visitor import language_choice
from ui.glossary import glossary_page
from ui.lessons import panel
from ui.room.room_panels import bar
from ui.server import metrics
from ui.server.turns import DRAWING
from ui.shared import menu
from ui.shared.door import st
from ui.state import apart
from words import say

ICON = Path(__file__).parent / "static" / "icon.svg"

apart.begin()
st.set_page_config(page_title=menu.NAME, page_icon=str(ICON), layout="wide")
presenter()

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
        st.Page("glassformer/extensions/what_if/pages/compare.py", title=say("Compare"), url_path="compare"),
        st.Page("glassformer/extensions/what_if/pages/matters.py", title=say("What matters"), url_path="matters"),
        st.Page("glassformer/extensions/what_if/pages/wrong.py", title=say("What goes wrong"), url_path="wrong"),
    ],
    say("Learn"): [
        st.Page("glassformer/extensions/classroom/pages/lessons.py", title=say("Lessons"), url_path="lessons"),
        st.Page("glassformer/extensions/classroom/pages/room.py", title=say("A room"), url_path="room"),
        st.Page(
            "glassformer/extensions/classroom/pages/projector.py",
            title=say("A room"),
            url_path="projector",
            visibility="hidden",
        ),
        st.Page("glassformer/extensions/classroom/pages/teachers.py", title=say("For teachers"), url_path="teachers"),
    ],
    say("My model"): [
        st.Page("glassformer/extensions/importers/pages/open.py", title=say("Open a checkpoint"), url_path="open"),
        st.Page("glassformer/extensions/doctor/pages/doctor.py", title=say("Doctor"), url_path="doctor"),
        st.Page("glassformer/extensions/training/pages/training.py", title=say("Training"), url_path="training"),
        st.Page("pages/debug/checkpoints.py", title=say("Checkpoints"), url_path="checkpoints"),
        st.Page(
            "glassformer/extensions/corpus/pages/sentences.py", title=say("A file of sentences"), url_path="sentences"
        ),
        st.Page("glassformer/extensions/corpus/pages/corpus.py", title=say("Over a corpus"), url_path="corpus"),
    ],
    say("Glossary"): [st.Page("pages/explore/glossary.py", title=say("Glossary"), url_path="glossary")],
}

page = st.navigation(PAGES, position="hidden")
with metrics.drawn(page.url_path), DRAWING.one():
    menu.begin(PAGES, page.url_path, language_choice)
    bar(page.url_path)
    glossary_page.underline()  # before the page, which may stop
    place = panel.begin(page.url_path)
    page.run()
    panel.fill(place)
