"""Widgets of a room: join URL, QR code, status bar, counts, timed vote controls, vote bars, projector view; CSS.

The browser receives the teacher's moves directly and opens the URL like a link: one script run per move, none for a
step until it has settled, none while nothing happens. A projector's computer only watches: it has no secret.

A QR code is black on white with a quiet zone of four modules, also in a dark theme, as scanners require.
Source: ISO/IEC 18004:2015, section 6.3.8 (quiet zone).
"""

import contextlib
import ipaddress
import socket
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any, Final, Literal
from urllib.parse import urlencode, urlsplit

import segno

from glassformer.charts.histograms import HOW_TO_READ_VOTES, RIGHT, votes_spec
from glassformer.components.custom_component import Element, told_text
from glassformer.extensions.rooms import room_session
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.room import OpenedRoom, Public, Room, RoomRefusedError
from glassformer.server.streamlit_private import styled
from glassformer.shared import drawing
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import here, st
from glassformer.shared.page_blocks import PageBlocks
from glassformer.state import global_params, language
from glassformer.state.global_params import base
from transformer.i18n import Sentence, joined, say, say_n

_QUIET: Final = 4  # modules around a code
_ELSEWHERE: Final = ("192.0.2.1", 9)  # of RFC 5737: nobody has it, and nothing is sent to it


def class_base() -> str:
    """The app's URL for other computers, as far as it is known here."""
    found = urlsplit(base())
    if not is_alone(found.hostname or "") or is_alone(str(st.get_option("server.address") or "")):
        return base()
    host, port = own_address(), f":{found.port}" if found.port else ""
    return found._replace(netloc=f"{host}{port}").geturl() if host else base()


def is_alone(host: str) -> bool:
    """Whether a host name means the client's own computer, so a phone would reach itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def own_address() -> str:
    """This computer's IP address in its network; "" without one. Nothing is sent for it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            asked.connect(_ELSEWHERE)
            found = str(asked.getsockname()[0])
    except OSError:
        return ""
    return "" if is_alone(found) else found


def join_url(code: str) -> str:
    """The URL to join a room."""
    return f"{class_base()}/?{room_session.PARAMETER}={code}"


def caution() -> None:
    """Warn if a class may not reach the URL."""
    if is_alone(urlsplit(class_base()).hostname or ""):
        said = say(
            "This app is open at {address}, which only this computer can reach. For a class, serve the app on "
            "your network (see docs/hosting.md) and open it at its network address.",
            address=base(),
        )
        st.warning(said, icon=":material/wifi_off:")


def qr(text: str, *, where: str) -> str:
    """A QR code as inline HTML, black on white in every theme; its class `where` sets the size."""
    made = segno.make_qr(text, error="m")
    uri = made.svg_data_uri(scale=8, border=_QUIET, dark="#000", light="#fff", xmldecl=False)
    said = escape(here(say("QR code of {address}", address=text)))
    return f'<img class="{escape(where)}" src="{escape(uri)}" alt="{said}">'


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


BAR: Final = "room_bar"
_BAR = Element(BAR)
_PRESENTER = Element("presenter")
_COUNTS = Element("room_counts")


def bar(page: str) -> None:
    """Draw the line of the room that the session is in, before a page."""
    looks_on, taught = page == room_session.PROJECTOR, room_session.taught()
    vote = None if looks_on else room_session.vote_given()
    st.html(BAR_RULES)
    payload = {
        "code": room_session.current(),
        # A student is counted and follows; a viewer only looks on.
        "role": "viewer" if looks_on else "student" if taught is None else "teacher",
        "secret": "" if looks_on or taught is None else taught.secret,  # the teacher's tab keeps it for a reload
        # For the browser to post with its token.
        "choice": None if vote is None else dict(zip(("round", "choice"), vote, strict=True)),
        "lesson": global_params.guidance().is_set,  # whatever the URL says
        "at": f"{page}?{urlencode(st.query_params.to_dict())}",
    }
    _BAR.draw(payload, key=BAR, hears={"teacher": _know_again, "votes": None, "left": room_session.leave})


def _know_again() -> None:
    """Callback: a tab that has kept the secret was reloaded."""
    room_session.become_teacher(told_text(BAR, "teacher"))


class _RoomBlocks(PageBlocks):
    def on_every_page(self) -> None:
        """The presentation button; `glassformer/shared/page_style.py` fixes its position."""
        _PRESENTER.draw({"spoken": language.in_address().get(language.PARAMETER, "")}, key="presenter")

    def above_page(self, page: str) -> None:
        if room_session.current():
            bar(page)


BLOCKS = _RoomBlocks()


def room_counts(*, key: str, large: bool = False) -> None:
    """Draw how many are in the room and how many have voted, live; large letters are for a wall."""
    _COUNTS.draw({"large": large}, key=key)


# ------------------------------------------------------------------------------------------------ votes

LETTERS = "ABCDEFGH"
BARS = "room_votes"
VOTE, DISCUSS = "room_vote_seconds", "room_discuss_minutes"
VOTE_SECONDS, DISCUSS_MINUTES = [30, 60, 90, 120], [0, 1, 2, 3, 5]
RIGHT_OR_NOT = (say("Right"), say("Not right"))  # the choices where choices are not compared


def controls(taught: OpenedRoom, public: Public, *, answer: Callable[[OpenedRoom], None] | None = None) -> None:
    """Draw what a teacher does next about the question; `answer` shows the answer, None where the app knows none."""
    if public.question is None:
        return

    def button(name: str, label: Sentence, icon: str, act: Callable[..., bool | None], *of: Any) -> None:
        kind: Literal["primary", "secondary"] = "primary" if name == "show" and public.taken else "secondary"
        st.button(label, key=f"room_{name}", icon=f":material/{icon}:", type=kind, on_click=do, args=(taught, act, *of))

    with st.container(horizontal=True, gap="small"):
        if public.taken or (public.phase and not public.answered):
            button("show", say("Show the votes"), "bar_chart", Room.show)
        if not public.taken and not public.answered:
            button("again", say("Vote again"), "replay", Room.again)
        if public.question.aloud:
            button("close", say("Close the question"), "close", Room.ask, None)
        if public.phase == "vote" and not public.answered:
            button("stop", say("Stop the timer"), "timer_off", Room.stop)
        elif not public.phase and not public.answered:
            _timer(taught)
        if answer is not None and not public.answered:
            see = partial(answer, taught)
            st.button(say("Show the answer"), key="room_answer", icon=":material/visibility:", on_click=see)


def _timer(taught: OpenedRoom) -> None:
    with st.popover(say("Timer"), icon=":material/timer:"):
        st.segmented_control(
            say("Seconds to vote"), VOTE_SECONDS, key=VOTE, default=60, required=True, persist_state=KEEP
        )
        st.segmented_control(
            say("Minutes to discuss"), DISCUSS_MINUTES, key=DISCUSS, default=2, required=True, persist_state=KEEP
        )
        said = say(
            "Students vote, discuss with their neighbours and vote again. With 0 minutes of discussion, "
            "they vote only once."
        )
        st.caption(said)
        st.button(say("Start"), key="room_start", type="primary", on_click=_start, args=(taught,))


def _start(taught: OpenedRoom) -> None:
    vote, discuss = st.session_state.get(VOTE) or 60, st.session_state.get(DISCUSS)
    discuss = 120 if discuss is None else discuss * 60
    do(taught, Room.start, vote, discuss)


def do(taught: OpenedRoom, act: Callable[..., bool | None], *of: Any) -> None:
    """Callback: `Registry.do`; nothing happens if the room has ended or moved on."""
    with contextlib.suppress(RoomRefusedError):
        ROOMS.do(taught, act, *of)


def lettered(choices: Sequence[str], *, right: int | None = None) -> list[str]:
    """Choices with letters, "B. the first piece"; `right` is marked if given."""
    called = list(choices)
    if tuple(choices) not in (RIGHT_OR_NOT, tuple(LETTERS[: len(choices)])):
        called = [joined(" ", [f"{letter}.", one]) for letter, one in zip(LETTERS, choices, strict=False)]
    if right is not None:
        called[right] = joined(" ", [RIGHT, called[right]])
    return called


def too_few(public: Public) -> Sentence | None:
    """Why votes that were shown are not seen by choice; None if they are, or none are to be seen."""
    if not _are_seen(public) or public.shown[-1].counts is not None:
        return None
    return say_n(
        "{n} vote. A chart of the choices appears once there are {least} votes.",
        "{n} votes. A chart of the choices appears once there are {least} votes.",
        public.shown[-1].voted,
        least=public.least,
    )


def _are_seen(public: Public) -> bool:
    """Whether votes may be shown: not during a vote, nor during the discussion before a second one."""
    return bool(public.shown) and not public.taken and not public.phase


def has_bars(public: Public) -> bool:
    """Whether `bars` draws something; while votes are taken, those of the round before would lead them."""
    return _are_seen(public) and public.shown[-1].counts is not None


def results(public: Public) -> None:
    """Draw the votes that were shown, or why there are none to see."""
    few = too_few(public)
    if few is not None:
        st.info(few)
    bars(public)


def bars(public: Public, *, key: str = BARS, large: bool = False) -> None:
    """Draw the votes that were shown, if there are enough; large for a wall."""
    question = public.question
    if question is None or not has_bars(public):
        return
    latest = public.shown[-1]
    rounds = [one.counts for one in reversed(public.shown[-2:]) if one.counts is not None]
    title = say_n("{n} vote", "{n} votes", latest.voted)
    drawing.chart(
        votes_spec(rounds, lettered(question.choices), title=title, right=public.right, large=large),
        key=key,
        alt=say("One bar per choice; its length is the number of votes."),
        how_to_read=HOW_TO_READ_VOTES,
        fit=large,
        of_sentence=False,
        of_lesson=True,
    )


# ------------------------------------------------------------------------------------------------ on the wall

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
        listed = not has_bars(public) and not _counts_right(public)
        st.html(_question(public, beside=_qr(code) if listed else ""))
    room_counts(key="wall_counts", large=True)
    bars(public, key="wall_votes", large=True)


def _head(code: str, *, alone: bool) -> str:
    address = f"{class_base().partition('://')[2]}/{room_session.PAGE}"
    join = f'<p class="gf-wall-address">{escape(here(say("Join: {address}", address=address)))}</p>'
    named = f'<p class="gf-wall-code">{escape(code)}</p>'
    if alone:
        return f'<div class="gf-wall gf-wall-alone"><div>{join}{named}</div>{_qr(code)}</div>'
    return f'<div class="gf-wall gf-wall-asked">{named}{join}</div>'


def _qr(code: str) -> str:
    return qr(join_url(code), where="gf-wall-qr")


def _counts_right(public: Public) -> bool:
    return public.question is not None and public.question.choices == RIGHT_OR_NOT


def _question(public: Public, *, beside: str) -> str:
    question = public.question
    if question is None:
        return ""
    parts = [f'<p class="gf-wall-question">{escape(here(question.text))}</p>']
    few = too_few(public)
    if few is not None:
        parts.append(f'<p class="gf-wall-few">{escape(here(few))}</p>')
    if _counts_right(public):
        parts.append(f'<p class="gf-wall-few">{escape(here(public.told or RIGHT_ALONE))}</p>')
    elif not has_bars(public):
        kind = "gf-wall-row" if max(map(len, question.choices)) == 1 else "gf-wall-list"  # letters alone
        right = [' class="gf-wall-right"' if place == public.right else "" for place in range(len(question.choices))]
        called = lettered(question.choices, right=public.right)
        listed = "".join(f"<li{which}>{escape(here(one))}</li>" for which, one in zip(right, called, strict=True))
        parts.append(f'<div class="gf-wall-choices"><ul class="{kind}">{listed}</ul>{beside}</div>')
    return f'<div class="gf-wall">{"".join(parts)}</div>'
