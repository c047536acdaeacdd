"""The glossary in the browser: terms underlined on every page with what they mean, and a list of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from ui.components.assets import loader, wrapped

# Underlines lie over the whole document, and definitions above it.
_MARKS = st.components.v2.component("glassformer_glossary_marks", js=loader("glossary_marks"), isolate_styles=False)
_LIST = st.components.v2.component("glassformer_glossary_list", js=loader("glossary_list"))


def glossary_marks(terms: Sequence[dict[str, str]], *, key: str, apart: str) -> None:
    """Underline terms where they first stand on the page, whatever page it is.

    Args:
        terms: For each its `id`, `name` and `text`, and where it has such, the words `also` used for it and the words
            `among` which alone it is a term.
        key: Names this place on the page.
        apart: Phrases in which the words of a term mean something else, with "|" between.
    """
    payload = {
        "terms": terms,
        "apart": apart,
    }
    _MARKS(key=key, data=wrapped(payload))


def glossary_list(terms: Sequence[dict[str, str]], *, key: str, chosen: str, on_choice: Callable[[], None]) -> None:
    """Draw all terms with a field to search in.

    Args:
        terms: As for `glossary_marks`, with the `place` where each is seen and its `address`, if it is seen anywhere.
        key: Names this place on the page.
        chosen: The id of the term that is shown first; "" for none.
        on_choice: Called when the reader chose another; `chosen_term(key)` tells which.
    """
    payload = {
        "terms": terms,
        "chosen": chosen,
    }
    _LIST(key=key, data=wrapped(payload), on_term_change=on_choice)


def chosen_term(key: str) -> str:
    """The id of the term that the reader chose; for use inside an `on_choice` callback."""
    state = st.session_state.get(key)
    term: Any = state.get("term") if isinstance(state, dict) else None
    return term if isinstance(term, str) else ""
