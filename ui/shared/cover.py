"""What a step of a lesson, or a teacher's link, keeps covered: it is not sent, and a quiet box stands there.

A step's `cover` names charts by their keys, any part of a page that asks here under a key of its own, `PART` for the
chosen part of a page with all its charts, texts and tables, or `*` for all of the page below the sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

from ui.shared.door import here, st
from ui.state import covering, in_room, predictions, session
from ui.state.view import SECOND
from words import Sentence, say

ALL: Final = predictions.WHOLE
PART: Final = "part"
HEIGHT: Final = 220  # pixels
MOST: Final = 420


def is_on() -> bool:
    """Whether anything is covered on this page."""
    return bool(predictions.covered_here())


def waits() -> bool:
    """Whether something on this page waits for the answer to a lesson's question."""
    return bool(predictions.covered_by_the_step())


def covered(key: str) -> bool:
    """Whether something is covered, by the key of a chart or of a part, which may begin with its slot."""
    words = predictions.covered_here()
    return predictions.WHOLE in words or key.removeprefix(SECOND) in words


def met(key: str, title: str = "") -> None:
    """Remember that the page draws something that can be covered, by its key; a chart has a title."""
    covering.met(st.session_state.get(session.URL_PAGE, ""), key.removeprefix(SECOND), title)


def stands_for(key: str, *, height: int = HEIGHT) -> bool:
    """Draw the box in the place of something that is covered, by its key; tells whether it is."""
    met(key)
    if not covered(key):
        return False
    with st.container(
        border=True,
        key=f"{'all' if key == ALL else key}_covered",
        height=min(height, MOST),
        horizontal_alignment="center",
        vertical_alignment="center",
    ):
        by_link = not {predictions.WHOLE, key.removeprefix(SECOND)}.isdisjoint(covering.words())
        st.caption(_why(by_link=by_link), width="content")
    return True


def _why(*, by_link: bool) -> str:
    if by_link:
        follows = in_room.current() and in_room.taught() is None
        return say("Covered by your teacher") if follows else say("Covered by the link you opened")
    if predictions.waits_for_teacher():
        return say("Covered until the teacher shows the answer")
    return say("Covered until you have answered")


def pieces(rows: Mapping[Sentence, Sequence[str]]) -> None:
    """Draw the pieces that a question is about; they stay visible, as only what answers it is covered."""
    told = [
        f'<p class="gf-pieces">{escape(here(said))} {" ".join(f"<span>{escape(one)}</span>" for one in row)}</p>'
        for said, row in rows.items()
    ]
    st.html("".join(told))


def part(draw: Callable[[], object], *, rows: Mapping[Sentence, Sequence[str]] | None = None) -> None:
    """Draw the chosen part of a page, unless it is covered.

    Rows of pieces are drawn when it is covered, on a page that shows them nowhere else.
    """
    met(PART)
    if not covered(PART):
        draw()
        return
    if rows:
        pieces(rows)
    stands_for(PART, height=HEIGHT if rows else MOST)
