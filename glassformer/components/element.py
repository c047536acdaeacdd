"""Python wrapper for a custom component: payload in, reported value out."""

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

import streamlit as st

from glassformer.components.assets import loader
from glassformer.state import language
from transformer.i18n import ENGLISH, said_throughout
from transformer.i18n.catalogue import browser_words

Hears = Mapping[str, Callable[[], None] | None]
"""What the browser says, by its name, and what is called then, before the page runs again."""


class Element:
    """A component, by its name in `COMPONENTS`; what is not isolated shares the page's styles."""

    def __init__(self, name: str, *, isolated: bool = True) -> None:
        self._mount = st.components.v2.component(f"glassformer_{name}", js=loader(name), isolate_styles=isolated)

    def draw(self, payload: dict[str, Any], *, key: str, hears: Hears | None = None) -> Any:
        """Draw it; the key names its place on the page. Gives back what the browser said that caused this run.

        Streamlit looks at each value of the outermost dict for a table, so there is only one. For another language
        than English a payload also holds `lang`, its tag, and `words`, which `common/i18n.js` describes.
        """
        if (spoken := language.current()) != ENGLISH:
            payload = said_throughout(payload, spoken) | {"lang": language.tag(), "words": browser_words(spoken)}
        # Streamlit only keeps state and returns events that have a callback.
        calls: dict[str, Any] = {f"on_{said}_change": call or _ignore for said, call in (hears or {}).items()}
        return self._mount(key=key, data={"payload": payload}, **calls)


def _ignore() -> None:
    """Do nothing."""


def told(key: str, name: str) -> Any:
    """What the component drawn under a key last said by a name, whatever that is; None if it said nothing."""
    state = st.session_state.get(key)
    return state.get(name) if isinstance(state, dict) else None


def told_text(key: str, name: str) -> str:
    """What it last said, if that is a text, else ""."""
    text = told(key, name)
    return text if isinstance(text, str) else ""


def is_count(value: object) -> TypeGuard[int]:
    """Whether what a browser said is a whole number from 0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
