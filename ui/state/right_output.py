"""The right output that a reader gave for a sentence.

It belongs to that sentence: another one has none, and who goes back to it finds it again, unless a newer one was
given.
"""

from __future__ import annotations

from typing import Final

import streamlit as st

KEPT: Final = "reference"  # the sentence that it is for, and the reference


def of(source: str | None) -> str | None:
    """The reference for a sentence; None if there is none.

    Args:
        source: The sentence; None for the checkpoint's first example, which a page is about to set.
    """
    whose, text = st.session_state.get(KEPT) or (None, None)
    if text is not None and whose is None and source is not None:
        keep(source, text)  # of a link that names no sentence
        return text
    return text if whose == source else None


def keep(source: str | None, text: str | None) -> None:
    """Callback: the reference for a sentence; None or an empty one for none."""
    st.session_state[KEPT] = (source, text) if text else None
