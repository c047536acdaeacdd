"""Room status bar and projector view: join code, counts, question, votes, and their CSS.

The browser receives the teacher's moves directly and opens the URL like a link: one script run per move, none for a
step until it has settled, none while nothing happens.

It holds no secret: a projector's computer only watches.
"""

from collections.abc import Callable
from html import escape
from typing import Literal

from glassformer.components.custom_component import Element
from glassformer.extensions.rooms import room_session
from glassformer.extensions.rooms.page import join_url, polling
from glassformer.extensions.rooms.server.room_state import Public
from glassformer.server.streamlit_private import styled
from glassformer.shared.i18n import here, st
from transformer.i18n import say

RULES = """
<style>
.gf-wall { line-height: 1.2; }
.gf-wall p { margin: 0; }
.gf-wall-address { font-size: clamp(1.2rem, 3vw, 5.4vh); opacity: 0.85; overflow-wrap: anywhere; }
.gf-wall-code { font-family: monospace; font-weight: 700; letter-spacing: 0.12em; }
.gf-wall-alone .gf-wall-address { font-size: clamp(1.4rem, 4vw, 7vh); padding-top: 3vh; }
.gf-wall-alone .gf-wall-code { font-size: min(24cqw, 44vh); line-height: 1.15; letter-spacing: 0.06em; }
.gf-join { width: 100%; min-width: 7rem; max-width: 14rem; image-rendering: pixelated; border-radius: 0.25rem; }
.gf-wall-alone { display: grid; gap: 0 4vw; grid-template-columns: minmax(0, 1fr) min(34vw, 62vh); }
.gf-wall-alone { align-items: center; }
.gf-wall-alone > div { container-type: inline-size; }
.gf-wall-qr { width: 100%; image-rendering: pixelated; border-radius: 0.5rem; }
.gf-wall-choices { display: flex; gap: 3vw; justify-content: space-between; align-items: flex-start; }
.gf-wall-choices > .gf-wall-qr { width: min(24vw, 42vh); flex: none; }
.gf-wall-asked { display: flex; flex-wrap: wrap; gap: 0 2rem; align-items: baseline; }
.gf-wall-asked .gf-wall-code { font-size: clamp(1.6rem, 3.6vw, 6vh); }
.gf-wall-question { font-size: clamp(1.4rem, 3.4vw, 6.2vh); font-weight: 600; padding: 0.4em 0; }
.gf-wall-few { font-size: clamp(1.2rem, 2.6vw, 4.8vh); opacity: 0.85; padding-bottom: 0.4em; }
.gf-wall ul { font-size: clamp(1.2rem, 3vw, 5.6vh); padding: 0; margin: 0 0 0.3em; list-style: none; }
.gf-wall .gf-wall-list { font-size: clamp(1.2rem, 3.6vw, 6.8vh); }
.gf-wall li { padding: 0.12em 0; margin: 0; font-size: inherit; }
.gf-wall li.gf-wall-right { font-weight: 700; }
.gf-wall .gf-wall-row { display: flex; gap: 0 1.5em; font-size: clamp(2rem, 7vw, 13vh); font-weight: 700; }
@media (max-width: 640px) { .gf-wall-alone { grid-template-columns: minmax(0, 1fr); } }
</style>
"""
NO_FEET = "<style>.gf-foot { display: none; }</style>"  # of charts, on the wall
# `--gf-room` is the line's height (`extensions/rooms/components/room/view.js`), which stays free.
BAR_RULES = styled("""
<style>
.st-key-room_bar { position: fixed; z-index: 999991; bottom: 0.5rem; left: 0.5rem; width: 17.75rem !important; }
:root.gf-present .st-key-room_bar { width: auto !important; }
:--app { --gf-under: var(--gf-room, 3rem); }
:--app :--sidebar-content { padding-bottom: calc(var(--gf-room, 5rem) + 1rem); }
:--app :--main-block { padding-bottom: max(4rem, calc(var(--gf-room, 3rem) + 1.5rem)); }
@media (max-width: 1100px) {
  :--app .st-key-lesson_panel { bottom: calc(var(--gf-room, 3rem) + 0.75rem); }
}
@media (min-width: 769px) and (max-width: 1100px) {
  :root:not(.gf-present) :--sidebar:--unfolded ~ * .st-key-lesson_panel { bottom: 0; }
}
@media (max-width: 640px) {
  .st-key-room_bar, :root.gf-present .st-key-room_bar { bottom: 0; left: 0; width: 100vw !important; }
  :--app :--main-block { padding-bottom: calc(var(--gf-room, 3rem) + 5rem); }
  :--app .st-key-lesson_panel { bottom: var(--gf-room, 3rem); }
}
</style>
""")


_BAR = Element("room_bar")
_COUNTS = Element("room_counts")
# A student is counted and follows; a viewer, such as a projector, only looks on.
Role = Literal["student", "teacher", "viewer"]


def room_bar(
    code: str,
    *,
    key: str,
    role: Role,
    secret: str = "",  # the teacher's; the teacher's browser tab keeps it for a reload
    # The round and the student's choice, from 0; the browser posts it with its token.
    vote: tuple[int, int] | None = None,
    at: str = "",  # the shown URL, after the app's own
    lesson: bool = False,  # whether the session is in a lesson, whatever the URL says
    # Called when a tab that kept the secret was reloaded; `told_text(key, "teacher")` returns it.
    on_teacher: Callable[[], None] | None = None,
    on_left: Callable[[], None] | None = None,  # called when the user leaves an ended room
) -> None:
    """Draw the line."""
    choice = None if vote is None else dict(zip(("round", "choice"), vote, strict=True))
    payload = {"code": code, "role": role, "secret": secret, "choice": choice, "lesson": lesson, "at": at}
    _BAR.draw(payload, key=key, hears={"teacher": on_teacher, "votes": None, "left": on_left})


def room_counts(*, key: str, large: bool = False) -> None:
    """Draw how many are in the room and how many have voted, live; large letters are for a wall."""
    _COUNTS.draw({"large": large}, key=key)


RIGHT_ALONE = say("The results show only how many answers were right, not which answers were given.")


def draw() -> None:
    """Draw the view, or a message that there is no room."""
    code, public = room_session.current(), room_session.public()
    if public is None:
        gone = room_session.away() or say("There is no room {code}, or it has ended.", code=code)
        st.html(f'{RULES}<div class="gf-wall"><p class="gf-wall-question">{escape(here(gone))}</p></div>')
        return
    asked = public.question is not None
    st.html(RULES + NO_FEET + _head(code, alone=not asked))
    if asked:
        listed = not polling.has_bars(public) and not _counts_right(public)
        st.html(_question(public, beside=_qr(code) if listed else ""))
    room_counts(key="wall_counts", large=True)
    polling.bars(public, key="wall_votes", large=True)


def _head(code: str, *, alone: bool) -> str:
    address = f"{join_url.class_base().partition('://')[2]}/{room_session.PAGE}"
    join = f'<p class="gf-wall-address">{escape(here(say("Join: {address}", address=address)))}</p>'
    named = f'<p class="gf-wall-code">{escape(code)}</p>'
    if alone:
        return f'<div class="gf-wall gf-wall-alone"><div>{join}{named}</div>{_qr(code)}</div>'
    return f'<div class="gf-wall gf-wall-asked">{named}{join}</div>'


def _qr(code: str) -> str:
    return join_url.qr(join_url.address(code), where="gf-wall-qr")


def _counts_right(public: Public) -> bool:
    return public.question is not None and public.question.choices == polling.RIGHT_OR_NOT


def _question(public: Public, *, beside: str) -> str:
    question = public.question
    if question is None:
        return ""
    parts = [f'<p class="gf-wall-question">{escape(here(question.text))}</p>']
    few = polling.too_few(public)
    if few is not None:
        parts.append(f'<p class="gf-wall-few">{escape(here(few))}</p>')
    if _counts_right(public):
        parts.append(f'<p class="gf-wall-few">{escape(here(public.told or RIGHT_ALONE))}</p>')
    elif not polling.has_bars(public):
        kind = "gf-wall-row" if max(map(len, question.choices)) == 1 else "gf-wall-list"  # letters alone
        right = [' class="gf-wall-right"' if place == public.right else "" for place in range(len(question.choices))]
        called = polling.lettered(question.choices, right=public.right)
        listed = "".join(f"<li{which}>{escape(here(one))}</li>" for which, one in zip(right, called, strict=True))
        parts.append(f'<div class="gf-wall-choices"><ul class="{kind}">{listed}</ul>{beside}</div>')
    return f'<div class="gf-wall">{"".join(parts)}</div>'
