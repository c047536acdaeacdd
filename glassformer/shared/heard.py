"""What a browser says of a choice when it does not know the session's new language yet.

A browser sends the label that it showed. Just after the language was changed this is a label of the language before,
which Streamlit takes for a value that the reader has typed: the checkpoint would be one that nobody knows. So a label
of any language counts as the option that it names, and as no choice at all where this is the option that was shown.
"""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from transformer.i18n import languages, said

SENT_AS_SHOWN = {"multiselect", "radio", "selectbox"}  # Streamlit finds out by itself for the others


class Heard:
    """One choice; as a callback it calls the choice's own only if the reader chose something else."""

    def __init__(self, name: str, args: Sequence[Any], named: dict[str, Any]) -> None:
        """Look at a call that draws a choice, and put an option in the place of a label that is known for it.

        The call is of Streamlit's function `name`; a callback among what it is given by name is replaced by this.
        """
        self._key = str(named.get("key", "")) if name in SENT_AS_SHOWN else ""
        self._options = list(args[1] if len(args) > 1 else named.get("options", ()))
        self._form: Callable[[Any], str] = named.get("format_func", str)
        self._shown: Any = None
        if not self._key:
            return
        self._settle()
        if callable(named.get("on_change")):
            self._then: Callable[..., None] = named["on_change"]
            named["on_change"] = self

    def shows(self, chosen: Any) -> None:
        """Remember what is shown."""
        self._shown = chosen

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """The browser says that something else is chosen."""
        if not (self._settle() and st.session_state[self._key] == self._shown):
            self._then(*args, **kwargs)

    def _settle(self) -> bool:
        """Put options in the places of labels; tells whether there were any."""
        value = st.session_state.get(self._key)
        meant = [*map(self._meant, value)] if isinstance(value, list) else self._meant(value)
        if meant == value:
            return False
        st.session_state[self._key] = meant
        return True

    def _meant(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self._options:
            return value
        named = (one for one in self._options for language in languages() if said(self._form(one), language) == value)
        return next(named, value)
