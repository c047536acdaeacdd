"""How many are in a room and how many have voted, live; the line at the foot of the page holds the connection."""

from __future__ import annotations

import streamlit as st

from ui.components.assets import loader, wrapped

_MOUNT = st.components.v2.component("glassformer_room_counts", js=loader("room_counts"))


def room_counts(*, key: str, large: bool = False) -> None:
    """Draw both numbers.

    Args:
        key: Names this place on the page.
        large: In letters for a wall.
    """
    payload = {
        "large": large,
    }
    _MOUNT(key=key, data=wrapped(payload))
