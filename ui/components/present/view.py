"""The button and the key that begin and end the presentation: no sidebar, and large type on page and charts.

All of it happens in the browser (`common/present.js`); Python is told nothing. The address then says `present=1`,
which `ui/state/language.py` leaves out. A language that was chosen is written into the address there, too, in place.
"""

from __future__ import annotations

import streamlit as st

from ui.components.assets import loader, wrapped
from ui.state import language

_MOUNT = st.components.v2.component("glassformer_present", js=loader("presenter"))


def presenter() -> None:
    """Draw the button; its place is fixed by `ui/shared/page_style.py`."""
    payload = {
        "spoken": language.in_address().get(language.PARAMETER, ""),
    }
    _MOUNT(key="presenter", data=wrapped(payload))
