"""Panels of the page A room: open, join, leave or end a room; the teacher's settings, votes, rounds as CSV."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from glassformer.extensions.rooms import registry, room_session, room_view
from glassformer.extensions.rooms.registry import MOST_OF_CLIENT, OPENED_A_SECOND, ROOMS
from glassformer.extensions.rooms.room import (
    LEAST_OF_FEW,
    LEAST_VOTES,
    Kept,
    OpenedRoom,
    Public,
    Question,
    Room,
    RoomRefusedError,
    table,
)
from glassformer.extensions.rooms.store import IDLE_SECONDS, MOST_ROOMS
from glassformer.shared import drawing
from glassformer.shared.csv_export import Origin, saved
from glassformer.shared.i18n import st
from glassformer.state import global_params, language, session
from transformer.i18n import say

OWN, CHOICES, FEW, LOCKED, ENDED = "room_own", "room_choices", "room_few", "room_locked", "room_ended"
MOST_ALOUD = 6  # choices of a question that is asked aloud
_SENTENCES = {False: say("Everybody uses my sentence"), True: say("Everybody uses their own sentence")}


def draw_teaching(taught: OpenedRoom, public: Public) -> None:
    """Draw the teacher's side of the page."""
    st.subheader(say("You are teaching in room {code}.", code=taught.code), anchor=False)
    code, said = st.columns([1, 3], gap="medium", vertical_alignment="center")
    where = room_view.join_url(taught.code)
    with code:
        st.html(room_view.RULES + room_view.qr(where, where="gf-join"))
    with said:
        st.markdown(say("Students scan this code, open this address, or type the room code on this page:"))
        st.code(where, language=None)
        room_view.caution()
        st.markdown(say("Now go to any page: the class follows you."))
    _sentences(taught, public)
    _few(taught, public)
    _door(taught, public)
    _voting(taught, public)
    with st.container(horizontal=True, gap="small"):
        wall = f"{room_session.PROJECTOR}?{room_session.PARAMETER}={taught.code}&{language.PRESENT}=1"
        st.link_button(
            say("Open the projector view"), f"{global_params.base()}/{wall}", icon=":material/cast_for_education:"
        )
        with st.popover(say("My own link"), icon=":material/key:"):
            st.markdown(
                say("Anyone who opens this link can teach in this room. Do not share it or show it on the projector.")
            )
            own = f"{room_session.PAGE}?{room_session.PARAMETER}={taught.code}&{room_session.SECRET}={taught.secret}"
            st.code(f"{global_params.base()}/{own}", language=None)
        save(ROOMS.record(taught), taught.code)
        st.button(say("End the room"), key="room_end", on_click=_end, icon=":material/close:")


def save(record: Sequence[Kept], code: str) -> None:
    """Draw the button that saves the rounds of a room; nothing before the first."""
    if record:
        st.download_button(
            say("Rounds as CSV"),
            saved(partial(table, record), Origin(), language.current()),
            file_name=f"room_{code}.csv",
            mime="text/csv",
            key="room_record",
            on_click="ignore",
            icon=":material/download:",
        )


def _setting(taught: OpenedRoom, key: str, now: bool, act: Callable[..., bool | None]) -> dict[str, Any]:
    """Options of a widget that shows a setting of the room and changes it by `act`."""
    st.session_state[key] = now
    return {"key": key, "on_change": lambda: room_view.do(taught, act, bool(st.session_state.get(key)))}


def _sentences(taught: OpenedRoom, public: Public) -> None:
    how = _setting(taught, OWN, public.own, Room.let_own)
    st.segmented_control(say("Sentence"), list(_SENTENCES), format_func=_SENTENCES.__getitem__, required=True, **how)
    if public.own:
        st.caption(room_view.RIGHT_ALONE)


def _few(taught: OpenedRoom, public: Public) -> None:
    label = say("Show bars even for fewer than {least} votes", least=LEAST_VOTES)
    st.toggle(label, **_setting(taught, FEW, public.few, Room.let_few))
    if public.few:
        said = say(
            "From the next vote on, bars show the choices as soon as there are {least} votes. In a small "
            "group, this can reveal who voted for what. If all students chose the same option, every vote is "
            "known, and anyone who voted can work out what the other students chose. Students are told about "
            "this before they vote.",
            least=LEAST_OF_FEW,
        )
        st.caption(said)


def _door(taught: OpenedRoom, public: Public) -> None:
    st.toggle(
        say("Lock the door: nobody else can join"),
        help=say("Who is in the room stays in it, also after a reload. Lock it once your class is there."),
        **_setting(taught, LOCKED, public.locked, Room.lock),
    )


def _voting(taught: OpenedRoom, public: Public) -> None:
    st.markdown(say("In a lesson, the class votes on each question. You can also ask a question aloud:"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.segmented_control(
            say("Choices"),
            list(range(2, MOST_ALOUD + 1)),
            key=CHOICES,
            default=4,
            format_func=lambda n: f"{room_view.LETTERS[0]} – {room_view.LETTERS[n - 1]}",
            required=True,
        )
        ask = partial(_ask, taught, public.round + 1)
        st.button(say("Ask for votes"), key="room_ask", on_click=ask, icon=":material/how_to_vote:")
    room_view.room_counts(key="room_counts")
    room_view.controls(taught, public)
    room_view.results(public)


def _ask(taught: OpenedRoom, number: int) -> None:
    """Callback: take votes on the question that the teacher asks aloud."""
    text, choices = say("Your teacher asks: which answer is right?"), st.session_state.get(CHOICES) or 4
    question = Question(f"aloud.{number}", text, tuple(room_view.LETTERS[:choices]), aloud=True)
    room_view.do(taught, Room.ask, question)


def _end() -> None:
    taught = room_session.taught()
    if taught is not None:
        with contextlib.suppress(RoomRefusedError):
            st.session_state[ENDED] = taught.code, ROOMS.record(taught)
            ROOMS.end(taught)
    if not ROOMS.store.away:
        room_session.leave()


def last() -> None:
    """Draw the rounds of the room that this session has ended, for its teacher only."""
    code, record = st.session_state.get(ENDED, ("", ()))
    if record:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                say("Room {code} has ended. Its voting rounds remain on this page until you close it.", code=code)
            )
            save(record, code)


TYPED = "room_typed"
REFUSED = "room_refused"

KEPT = say("For each browser tab in a room, this server keeps a random number and the tab's votes, in memory only. "
           "It stores no student's name, account or sentence, and it writes nothing to disk. Of a network address "
           "it keeps a number that only tells who asks too often. The votes are deleted together with the room: "
           "when its teacher ends it, after {hours} hours without use, or when the server restarts.",
           hours=round(IDLE_SECONDS / 3600))  # fmt: skip
KEPT_SHARED = say(
    "For each browser tab in a room, a store that all replicas of this server share keeps a random number and the "
    "tab's votes. It stores no student's name, account or sentence. Of a network address it keeps a number that only "
    "tells who asks too often. The votes are deleted together with the room: when its teacher ends it, or after "
    "{hours} hours without use.",
    hours=round(IDLE_SECONDS / 3600),
)
_WHY_NOT = {
    "full": say("This server has {n} rooms, and takes no more. Try again once one of them has ended.", n=MOST_ROOMS),
    "crowded": say("Your network has {n} rooms here, and may have no more. End one, then try again.", n=MOST_OF_CLIENT),
    "too-often": say("You have opened many rooms. Wait {n} seconds, then try again.", n=round(1 / OPENED_A_SECOND)),
}


def draw() -> None:
    """Draw what the session can do about rooms."""
    drawing.notes(session.take_notes())
    away = room_session.away()
    if away is not None:
        st.warning(away, icon=":material/cloud_off:")
    code, taught = room_session.current(), room_session.taught()
    public = room_session.public()
    if taught is not None and public is not None and ROOMS.is_teacher(code, taught.secret):
        draw_teaching(taught, public)
    elif public is not None:
        _joined(code)
        room_view.results(public)
    else:
        _outside(code)
    with st.expander(say("What is kept of a room")):
        st.caption(KEPT_SHARED if ROOMS.store.is_shared else KEPT)


def _outside(code: str) -> None:
    last()
    if code and not ROOMS.store.away:
        st.info(say("There is no room {code}, or it has ended.", code=code), icon=":material/door_front:")
    join, teach = st.columns(2, gap="large")
    with join:
        st.subheader(say("Join a room"), anchor=False)
        st.text_input(
            say("Room code"), key=TYPED, max_chars=20, placeholder=say("6 letters and digits"), on_change=_join
        )
        refused = st.session_state.pop(REFUSED, None)
        if refused is not None:
            st.warning(refused)
        st.caption(say("You need neither an account nor a name. Once you join, your page goes where the teacher goes."))
    with teach:
        st.subheader(say("Open a room"), anchor=False)
        st.button(say("Open a room"), key="room_open", on_click=_open, icon=":material/meeting_room:")
        st.caption(say("For teachers: your class follows you through the app, and votes before an answer is shown."))


def _join() -> None:
    typed = st.session_state.get(TYPED) or ""
    code = registry.read_code(typed)
    if code and not room_session.may_look_for(code):
        st.session_state[REFUSED] = room_session.TOO_MANY
    elif code and ROOMS.public(code) is not None:
        room_session.enter(code)
    elif typed and not ROOMS.store.away:
        st.session_state[REFUSED] = say(
            "There is no room with this code. A code has 6 letters and digits, such as K7MPR4."
        )


def _open() -> None:
    try:
        opened = ROOMS.open(*room_session.asking())
        room_session.enter(opened.code, opened)
    except RoomRefusedError as refused:
        if not ROOMS.store.away:
            st.session_state[REFUSED] = _WHY_NOT[refused.why]


def _joined(code: str) -> None:
    st.subheader(say("You are in room {code}.", code=code), anchor=False)
    said = say(
        "Your page goes where the teacher goes. At any time, you can look around on your own and come back, "
        "using the line at the bottom of each page."
    )
    st.markdown(said)
    st.button(say("Leave the room"), on_click=room_session.leave, icon=":material/logout:")
