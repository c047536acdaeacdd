"""The choice of a language, and the checkpoint that reads the browser's, which opens where an address names none."""

from collections.abc import Mapping
from typing import Final

from glassformer.shared.door import st
from glassformer.state import apart, language, session
from glassformer.state.view import MAIN
from transformer.checkpoint.listing import Entry
from transformer.i18n import languages, name_of, say

LANGUAGE: Final = "language_choice"


def language_choice() -> None:
    """Draw the choice of a language, if there is one."""
    if not language.menu_is_needed():
        return
    st.session_state[LANGUAGE] = language.current()
    st.selectbox(
        say("Language"),
        languages(),
        key=LANGUAGE,
        format_func=name_of,
        on_change=lambda: language.choose(st.session_state[LANGUAGE]),
        label_visibility="collapsed",
    )


def settle_defaults(usable: Mapping[str, Entry]) -> None:
    """Remember which checkpoint an address means that names none, and which one a bare address means here.

    Addresses that say a sentence or a checkpoint's hash mean the same for everybody, and so do lessons. In a room a
    bare one means its teacher's checkpoint and sentence. Of what is `usable`, the default stands first.
    """
    names, state = list(usable), st.session_state
    spoken, guidance = language.of_browser(), apart.guidance()
    read = (name for name, entry in usable.items() if entry.code and entry.code == spoken)
    bare = names[0] if guidance.follows or guidance.is_set else next(read, names[0])
    state[session.DEFAULT_MODEL], state[session.BARE_MODEL] = names[0], bare
    is_bare = state.get(session.SOURCE) is None and not session.standing(MAIN).revision
    if not state.get(session.MODEL):
        state[session.MODEL] = bare if is_bare else names[0]
        if is_bare and guidance.bare.get("model") in usable:
            state.update({session.MODEL: guidance.bare["model"], session.SOURCE: guidance.bare.get("src")})
