"""The classroom's hooks on every page: `cover` query parameter, hidden charts and why, place of the lesson panel.

    cover=candidates.cross_map      charts and parts that a teacher's link hides

A cover stays for the session, on all pages and sentences, until the user shows everything again or a URL has an empty
`cover=`, as after the teacher has shown the charts. It keeps a class from reading ahead; it does not protect anything.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from glassformer.extensions.classroom import lesson, panel, predictions, step_links
from glassformer.extensions.rooms import room_session
from glassformer.shared.cover_box import Hider
from glassformer.shared.i18n import st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state.global_params import AddressPart, Guidance
from transformer.checkpoint.load import Checkpoint
from transformer.i18n import say

COVER: Final = "cover"  # in the address
WORDS: Final = "covered_by_link"  # in the session
MET: Final = "could_be_covered"  # in the session
MOST_COVERED: Final = 12
MOST_MET, MOST_TITLE = 60, 80  # of a page, and of a title
_WORD = re.compile(r"\*|[a-z][a-z_]{0,30}", re.ASCII)


def read_cover(written: str) -> tuple[str, ...]:
    """The words of the parameter, split at the points; what is not a word is left out."""
    return tuple(dict.fromkeys(word for word in written[:400].split(".") if _WORD.fullmatch(word)))[:MOST_COVERED]


def write_cover(words: Iterable[str]) -> str:
    """The words as an address says them."""
    return ".".join(words)


def covered_by_link() -> tuple[str, ...]:
    """What is covered by the link that was opened."""
    return st.session_state.get(WORDS, ())


def show_all() -> None:
    """Callback: cover nothing any more."""
    st.session_state[WORDS] = ()
    st.query_params.pop(COVER, None)


class _ClassroomAddress(AddressPart):
    names = (*lesson.NAMES, COVER)

    def begin(self) -> None:
        lesson.begin()
        written = st.query_params.get(COVER)
        if written is not None:
            st.session_state[WORDS] = read_cover(written)

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        place = {} if lesson.PARAMETER in parameters else lesson.in_address()
        covered = () if COVER in parameters else covered_by_link()
        return ({COVER: write_cover(covered)} if covered else {}) | place

    def take_notes(self) -> tuple[str, ...]:
        return lesson.take_notes()

    def gave(self, parameters: Mapping[str, tuple[str, ...]]) -> None:
        lesson.gave(parameters)

    def guidance(self) -> Guidance:
        return Guidance(is_set=lesson.place() is not None)


ADDRESS = _ClassroomAddress()


class _ClassroomHider(Hider):
    def words(self) -> tuple[str, ...]:
        return (*predictions.covered_by_the_step(), *covered_by_link())

    def waits(self) -> bool:
        return bool(predictions.covered_by_the_step())

    def why(self, key: str) -> str:
        if not {predictions.WHOLE, key}.isdisjoint(covered_by_link()):
            follows = room_session.current() and room_session.taught() is None
            return say("Covered by your teacher") if follows else say("Covered by the link you opened")
        if predictions.waits_for_teacher():
            return say("Covered until the teacher shows the answer")
        return say("Covered until you have answered")

    def met(self, page: str, key: str, title: str) -> None:
        """Remember what a page draws that can be covered, for a teacher who builds a link to it."""
        pages: dict[str, dict[str, str]] = st.session_state.setdefault(MET, {})
        known = pages.pop(page, {})
        if _WORD.fullmatch(key) and (key in known or len(known) < MOST_MET):
            known[key] = title[:MOST_TITLE] or known.get(key, "")
        pages[page] = known  # the page that was drawn last stands last


HIDER = _ClassroomHider()


class _ClassroomBlocks(PageBlocks):
    @contextmanager
    def around_page(self, page: str) -> Iterator[None]:
        place = panel.begin(page)
        yield
        panel.fill(place)

    def opened(self, checkpoint: Checkpoint) -> None:
        lesson.about(checkpoint)

    def in_class(self) -> Callable[[], None] | None:
        return _show_covered if covered_by_link() else None

    def under_source(self, checkpoint: Checkpoint) -> None:
        step_links.arrive(checkpoint)


def _show_covered() -> None:
    st.caption(say("The link that you opened covers some parts of the pages."))
    st.button(say("Show them"), key="show_covered", on_click=show_all, type="tertiary")


BLOCKS = _ClassroomBlocks()
