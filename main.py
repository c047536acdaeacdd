"""What runs for every visitor: the language, the page's frame and the list of pages."""

from pathlib import Path

from streamlit.navigation.page import StreamlitPage

from ui.shared import style
from ui.shared.door import st
from ui.state import language
from words import say

NAME = "Glassformer"
ICON = Path(__file__).parent / "static" / "icon.svg"

language.begin()
st.set_page_config(page_title=NAME, page_icon=str(ICON), layout="wide")
style.apply()

PAGES: dict[str, list[StreamlitPage]] = {
    say("Explore"): [
        st.Page("pages/explore/step.py", title=say("Step through decoding"), url_path="home", default=True),
        # The default page lives at "/" and nowhere else; who types its name shall find it too.
        st.Page("pages/explore/step.py", title=say("Step through decoding"), url_path="step", visibility="hidden"),
        st.Page("pages/explore/attention.py", title=say("Attention"), url_path="attention"),
        st.Page("pages/explore/positions.py", title=say("Positions"), url_path="positions"),
        st.Page("pages/explore/masks.py", title=say("Masks"), url_path="masks"),
        st.Page("pages/explore/inside.py", title=say("Inside the model"), url_path="inside"),
    ],
    say("Debug"): [
        st.Page("pages/debug/checkpoints.py", title=say("Checkpoints"), url_path="checkpoints"),
    ],
}

st.navigation(PAGES).run()
