"""What a teacher's link covers: words of the address for charts and parts that are not sent (`shared.cover`).

    cover=candidates.cross_map

It stays for the session, over pages and sentences, until its reader shows everything again, or an address says
`cover=` with nothing, as that of a class whose teacher has shown it: it keeps a class from reading ahead, and is no
lock.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import streamlit as st

PARAMETER: Final = "cover"  # in the address
WORDS: Final = "covered_by_link"  # in the session
MET: Final = "could_be_covered"  # in the session
MOST: Final = 12
MOST_MET, MOST_TITLE = 60, 80  # of a page, and of a title

_WORD = re.compile(r"\*|[a-z][a-z_]{0,30}", re.ASCII)


def read(written: str) -> tuple[str, ...]:
    """The words that an address says, with points between them; what is no word is left out."""
    return tuple(dict.fromkeys(word for word in written[:400].split(".") if _WORD.fullmatch(word)))[:MOST]


def write(words: Iterable[str]) -> str:
    """The words as an address says them."""
    return ".".join(words)


def begin() -> None:
    """Take them from the address, if it has any; call it when a run begins."""
    written = st.query_params.get(PARAMETER)
    if written is not None:
        st.session_state[WORDS] = read(written)


def met(page: str, key: str, title: str) -> None:
    """Remember what a page draws that can be covered, for a teacher who builds a link to it."""
    pages: dict[str, dict[str, str]] = st.session_state.setdefault(MET, {})
    known = pages.pop(page, {})
    if _WORD.fullmatch(key) and (key in known or len(known) < MOST_MET):
        known[key] = title[:MOST_TITLE] or known.get(key, "")
    pages[page] = known  # the page that was drawn last stands last


def of_page(page: str) -> Mapping[str, str]:
    """What this session has seen on a page that can be covered: each key with its title, or ""."""
    found: Mapping[str, str] = st.session_state.get(MET, {}).get(page, {})
    return found


def latest() -> str:
    """The page that was drawn last of those on which something can be covered; "" for none."""
    return next(reversed(st.session_state.get(MET, {})), "")


def words() -> tuple[str, ...]:
    """What is covered by the link that was opened."""
    found: tuple[str, ...] = st.session_state.get(WORDS, ())
    return found


def show_all() -> None:
    """Callback: cover nothing any more."""
    st.session_state[WORDS] = ()
    st.query_params.pop(PARAMETER, None)


def in_address() -> dict[str, str]:
    """What the address says of it."""
    return {PARAMETER: write(words())} if words() else {}
