"""Covers: placeholders for charts and parts that a lesson or a teacher's link hides; the interface `Hider`.

Covered are charts by their keys, any part of a page that asks here under a key of its own, `PART` for the chosen part
of a page with all its charts, texts and tables, or `*` for all of the page below the sentence. An extension's `hides`
names a `Hider`.
"""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

from glassformer.shared.i18n import here, st
from glassformer.state import session
from glassformer.state.view import SECOND
from transformer.extensions import provided
from transformer.i18n import Sentence

ALL: Final = "*"
PART: Final = "part"
HEIGHT: Final = 220  # pixels
MOST: Final = 420


class Hider:
    """What an extension keeps covered."""

    def words(self) -> tuple[str, ...]:
        """What is covered on the page that is drawn now: keys without their slot, `PART`, or `ALL`."""
        return ()

    def waits(self) -> bool:
        """Whether something of it waits for the reader's answer, which the page must not give away."""
        return False

    def why(self, key: str) -> str:
        """Why something is covered, by its key, `PART` or `ALL`."""
        raise NotImplementedError

    def met(self, page: str, key: str, title: str) -> None:
        """A page draws something that can be covered; a chart has a title."""


def _hiders() -> tuple[Hider, ...]:
    return provided("hides")


def is_on() -> bool:
    """Whether anything is covered on this page."""
    return any(one.words() for one in _hiders())


def waits() -> bool:
    """Whether something on this page waits for the reader's answer."""
    return any(one.waits() for one in _hiders())


def covered(key: str) -> bool:
    """Whether something is covered, by the key of a chart or of a part, which may begin with its slot."""
    return _by(key) is not None


def _by(key: str) -> Hider | None:
    """What covers something; None if nothing does."""
    either = {ALL, key.removeprefix(SECOND)}
    return next((one for one in _hiders() if not either.isdisjoint(one.words())), None)


def met(key: str, title: str = "") -> None:
    """Remember that the page draws something that can be covered, by its key; a chart has a title."""
    page = st.session_state.get(session.URL_PAGE, "")
    for one in _hiders():
        one.met(page, key.removeprefix(SECOND), title)


def stands_for(key: str, *, height: int = HEIGHT) -> bool:
    """Draw the box in the place of something that is covered, by its key; tells whether it is."""
    met(key)
    hider = _by(key)
    if hider is None:
        return False
    with st.container(
        border=True,
        key=f"{'all' if key == ALL else key}_covered",
        height=min(height, MOST),
        horizontal_alignment="center",
        vertical_alignment="center",
    ):
        st.caption(hider.why(key.removeprefix(SECOND)), width="content")
    return True


def pieces(rows: Mapping[Sentence, Sequence[str]]) -> None:
    """Draw the pieces that a question is about; they stay visible, as only what answers it is covered."""
    told = [
        f'<p class="gf-pieces">{escape(here(said))} {" ".join(f"<span>{escape(one)}</span>" for one in row)}</p>'
        for said, row in rows.items()
    ]
    st.html("".join(told))


def part(draw: Callable[[], object], *, rows: Mapping[Sentence, Sequence[str]] | None = None) -> None:
    """Draw the chosen part of a page; if it is covered, the `rows` of pieces that the page shows nowhere else."""
    met(PART)
    if not covered(PART):
        draw()
        return
    if rows:
        pieces(rows)
    stands_for(PART, height=HEIGHT if rows else MOST)
