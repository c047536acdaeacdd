"""Language of the session: query parameter, choice, or browser setting.

Read at each call, as a fragment runs without `main.py`. Without a session (the model's thread, a notebook, a test) it
is English, so nothing cached is in a user's language.
"""

from typing import Final

import streamlit as st

from glassformer.server.streamlit_private import session_state
from transformer.i18n import ENGLISH, PSEUDO, negotiated

PARAMETER = "lang"  # in the address
PRESENT = "present"  # in the address, too; the browser alone reads and writes it (`common/present.js`)
NAMES: Final = (PARAMETER, PRESENT)  # no link's: they are of the reader alone
LANGUAGE = "language"  # in the session: the language spoken now
CHOSEN = "language_chosen"  # in the session: what the address shall say of it, else None
LEFT = "language_left"  # in the session: what the address says until the browser has heard of another choice

_CHOSEN: Final = (str, int, float)  # not bool

_TAGS = {"zh": "zh-CN", PSEUDO: ENGLISH}  # where a browser needs to know more than the catalogue's name


def current() -> str:
    """The language of the session that draws now; English where there is none."""
    state = session_state()
    if state is None:
        return ENGLISH
    try:
        return state[LANGUAGE]
    except KeyError:
        return begin()


def of_browser() -> str:
    """The browser's language, whatever was chosen since; "" if it is not supported."""
    return negotiated(st.context.locale) or ""


def tag_of(language: str) -> str:
    """What the page's `<html lang>` says of a language: it decides how glyphs look and who reads aloud."""
    return _TAGS.get(language, language)


def begin() -> str:
    """Take the language that the address names; call it when a run begins, before anything is drawn."""
    state = st.session_state
    written = st.query_params.get(PARAMETER)
    named = negotiated(written)
    if LEFT in state and written == state[LEFT]:
        return state[LANGUAGE]
    state.pop(LEFT, None)
    if named is not None:
        state[LANGUAGE], state[CHOSEN] = named, written
    elif LANGUAGE not in state:
        state[LANGUAGE], state[CHOSEN] = of_browser() or ENGLISH, None
    return state[LANGUAGE]


def in_address() -> dict[str, str]:
    """What the address says of the language: nothing where the browser's own is spoken."""
    chosen = st.session_state.get(CHOSEN)
    return {PARAMETER: chosen} if chosen else {}


def choose(language: str) -> None:
    """Speak another language from now on; only in a callback.

    The URL changes in place (`extensions/rooms/components/present`): a history entry that differs in the language alone
    would lead back to the same page.

    Widgets send the label that they showed, in the old language: setting their values again keeps them. The session
    does not distinguish widgets from its other values, for which that is harmless.
    """
    state = st.session_state
    state[LEFT] = st.query_params.get(PARAMETER)
    state[LANGUAGE] = state[CHOSEN] = language
    for key in list(state):
        if _is_a_choice(state[key]):
            state[key] = state[key]


def _is_a_choice(value: object) -> bool:
    """Whether a widget of choices may have this value; not one of a button or an upload, which may not be set."""
    if isinstance(value, tuple | list):
        return bool(value) and all(type(one) in _CHOSEN for one in value)
    return type(value) in _CHOSEN
