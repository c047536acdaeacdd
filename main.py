"""What runs for every visitor: the page's frame and the list of pages."""

from pathlib import Path

import streamlit as st

from ui.shared import style

ICON = Path(__file__).parent / "static" / "icon.svg"

st.set_page_config(page_title="Glassformer", page_icon=str(ICON), layout="wide")
style.apply()

PAGES = {
    "Explore": [
        st.Page("pages/explore/step.py", title="Step through decoding", url_path="home", default=True),
        # The default page lives at "/" and nowhere else; who types its name shall find it too.
        st.Page("pages/explore/step.py", title="Step through decoding", url_path="step", visibility="hidden"),
        st.Page("pages/explore/attention.py", title="Attention", url_path="attention"),
        st.Page("pages/explore/positions.py", title="Positions", url_path="positions"),
        st.Page("pages/explore/masks.py", title="Masks", url_path="masks"),
        st.Page("pages/explore/inside.py", title="Inside the model", url_path="inside"),
    ],
    "Debug": [
        st.Page("pages/debug/checkpoints.py", title="Checkpoints", url_path="checkpoints"),
    ],
}

st.navigation(PAGES).run()
