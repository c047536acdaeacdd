"""What a teacher sees of a room on its page: how students come in, what they are asked, how it ends."""

import contextlib
from collections.abc import Sequence
from functools import partial

from glassformer.extensions.rooms import in_room
from glassformer.extensions.rooms.components.room.room_view import room_counts
from glassformer.extensions.rooms.page import joining, polling
from glassformer.extensions.rooms.page.projector_style import RULES
from glassformer.extensions.rooms.server.public import (
    LEAST_OF_FEW,
    LEAST_VOTES,
    Kept,
    Opened,
    Public,
    RefusedError,
    table,
)
from glassformer.extensions.rooms.server.registry import ROOMS
from glassformer.extensions.rooms.server.room import Room
from glassformer.shared.door import st
from glassformer.shared.saving import Origin, saved
from glassformer.state import apart, language
from transformer.i18n import say

OWN, CHOICES, FEW, LOCKED, ENDED = "room_own", "room_choices", "room_few", "room_locked", "room_ended"
MOST_ALOUD = 6  # choices of a question that is asked aloud
_SENTENCES = {False: say("Everybody uses my sentence"), True: say("Everybody uses their own sentence")}


def draw(taught: Opened, public: Public) -> None:
    """Draw the teacher's side of the page."""
    st.subheader(say("You are teaching in room {code}.", code=taught.code), anchor=False)
    code, said = st.columns([1, 3], gap="medium", vertical_alignment="center")
    where = joining.address(taught.code)
    with code:
        st.html(RULES + joining.qr(where, where="gf-join"))
    with said:
        st.markdown(say("Students scan this code, open this address, or type the room code on this page:"))
        st.code(where, language=None)
        joining.caution()
        st.markdown(say("Now go to any page: the class follows you."))
    _sentences(taught, public)
    _few(taught, public)
    _door(taught, public)
    _voting(taught, public)
    with st.container(horizontal=True, gap="small"):
        wall = f"{in_room.PROJECTOR}?{in_room.PARAMETER}={taught.code}&{language.PRESENT}=1"
        st.link_button(say("Open the projector view"), f"{apart.base()}/{wall}", icon=":material/cast_for_education:")
        with st.popover(say("My own link"), icon=":material/key:"):
            st.markdown(
                say("Anyone who opens this link can teach in this room. Do not share it or show it on the projector.")
            )
            own = f"{in_room.PAGE}?{in_room.PARAMETER}={taught.code}&{in_room.SECRET}={taught.secret}"
            st.code(f"{apart.base()}/{own}", language=None)
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


def _sentences(taught: Opened, public: Public) -> None:
    st.session_state[OWN] = public.own
    st.segmented_control(
        say("Sentence"),
        list(_SENTENCES),
        key=OWN,
        format_func=_SENTENCES.__getitem__,
        required=True,
        on_change=lambda: polling.do(taught, Room.let_own, bool(st.session_state.get(OWN))),
    )
    if public.own:
        st.caption(
            say(
                "Choices for different sentences cannot be compared, so the results show only how many answers were "
                "right."
            )
        )


def _few(taught: Opened, public: Public) -> None:
    st.session_state[FEW] = public.few
    st.toggle(
        say("Show bars even for fewer than {least} votes", least=LEAST_VOTES),
        key=FEW,
        on_change=lambda: polling.do(taught, Room.let_few, bool(st.session_state.get(FEW))),
    )
    if public.few:
        st.caption(
            say(
                "From the next vote on, bars show the choices as soon as there are {least} votes. In a small "
                "group, this can reveal who voted for what. If all students chose the same option, every vote is "
                "known, and anyone who voted can work out what the other students chose. Students are told about "
                "this before they vote.",
                least=LEAST_OF_FEW,
            )
        )


def _door(taught: Opened, public: Public) -> None:
    st.session_state[LOCKED] = public.locked
    st.toggle(
        say("Lock the door: nobody else can join"),
        key=LOCKED,
        on_change=lambda: polling.do(taught, Room.lock, bool(st.session_state.get(LOCKED))),
        help=say("Who is in the room stays in it, also after a reload. Lock it once your class is there."),
    )


def _voting(taught: Opened, public: Public) -> None:
    st.markdown(say("In a lesson, the class votes on each question. You can also ask a question aloud:"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.segmented_control(
            say("Choices"),
            list(range(2, MOST_ALOUD + 1)),
            key=CHOICES,
            default=4,
            format_func=lambda n: f"{polling.LETTERS[0]} – {polling.LETTERS[n - 1]}",
            required=True,
        )
        ask = partial(_ask, taught, public.round + 1)
        st.button(say("Ask for votes"), key="room_ask", on_click=ask, icon=":material/how_to_vote:")
    room_counts(key="room_counts")
    polling.controls(taught, public)
    polling.results(public)


def _ask(taught: Opened, number: int) -> None:
    polling.ask_aloud(taught, number, st.session_state.get(CHOICES) or 4)


def _end() -> None:
    taught = in_room.taught()
    if taught is not None:
        with contextlib.suppress(RefusedError):
            st.session_state[ENDED] = taught.code, ROOMS.record(taught)
            ROOMS.end(taught)
    if not ROOMS.away:
        in_room.leave()


def last() -> None:
    """Draw what is left of the room that this session has ended: its rounds, for its teacher alone."""
    code, record = st.session_state.get(ENDED, ("", ()))
    if record:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                say("Room {code} has ended. Its voting rounds remain on this page until you close it.", code=code)
            )
            save(record, code)
