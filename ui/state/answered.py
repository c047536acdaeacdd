"""What a session keeps of the answers about models of other programs; of several, as a reader may go to and fro."""

from __future__ import annotations

from typing import Final

import streamlit as st

from ui.state.answers import Answers

ANSWERS: Final = "answers"


def of(model: str) -> Answers:
    """What the reader said of a model."""
    found: Answers = st.session_state.get(ANSWERS, {}).get(model, ())
    return found


def keep(model: str, answers: Answers) -> None:
    """Remember what the reader says of a model."""
    st.session_state[ANSWERS] = {**st.session_state.get(ANSWERS, {}), model: answers}
