"""Room membership of the session (code, role, vote), its URL parameters, and where the teacher leads the class.

The code is a query parameter, so a reload and every link of the app keep it. A session is the teacher's if it has the
room's secret, which is never written into a URL.

The teacher's moves need no request: the teacher's session publishes them to the room in this process.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

import streamlit as st

from glassformer.extensions.rooms import registry
from glassformer.extensions.rooms.registry import ROOMS, client
from glassformer.extensions.rooms.room import OpenedRoom, Public, Room, RoomRefusedError
from glassformer.server.streamlit_private import session_id
from glassformer.state import global_params, language
from glassformer.state.global_params import AddressPart, Guidance
from transformer.i18n import Sentence, say

PARAMETER: Final = "room"  # query parameter
SECRET: Final = "teacher"  # in a teacher's own link
NAMES: Final = (PARAMETER, SECRET)
PAGE, PROJECTOR = "room", "projector"  # paths of the pages about rooms, to which a class does not follow
CODE, TAUGHT, VOTE, LEFT = "room_code", "room_taught", "room_vote", "room_left"  # in the session
NOTES: Final = "room_notes"
_LONGEST_SHOWN: Final = 20
TOO_MANY: Final = say("Too many wrong room codes were entered from your network. Wait a minute, then try again.")


def begin() -> None:
    """Take the room from the URL, when a script run begins.

    A browser that does not know yet that its user has left a room still sends the old URL.
    """
    typed = st.query_params.get(PARAMETER)
    code = registry.read_code(typed) if typed else ""
    if code and code != current() and code != st.session_state.get(LEFT):
        if may_look_for(code):
            _be_in(code, None)
        else:
            st.session_state.update({LEFT: code, NOTES: (TOO_MANY,)})
    if typed and not code:
        st.session_state[NOTES] = (
            say(
                "“{found}” in the link is not a room code: a room code has {n} letters and digits. Ask for the "
                "complete link, or type the code on the “A room” page.",
                found=typed[:_LONGEST_SHOWN],
                n=registry.LENGTH,
            ),
        )
    secret = st.query_params.get(SECRET)
    if secret:
        del st.query_params[SECRET]
        become_teacher(secret)


def may_look_for(code: str) -> bool:
    """Whether this client may ask if a room exists: not for a while after many wrong codes."""
    ROOMS.store.look(code)
    return ROOMS.public(code) is not None or bool(ROOMS.store.away) or ROOMS.missed(code, asking()[0])


def asking() -> tuple[str, str]:
    """The session's client and user, for limits."""
    return client(st.context.ip_address), session_id() or ""


def current() -> str:
    """The code of the room that the session is in; "" for none."""
    return st.session_state.get(CODE, "")


def taught() -> OpenedRoom | None:
    """The room that the session teaches; None if it does not."""
    return st.session_state.get(TAUGHT)


def enter(code: str, opened: OpenedRoom | None = None) -> None:
    """Callback: be in a room, as a student, or as its teacher if it was just opened."""
    _be_in(code, opened)
    st.query_params[PARAMETER] = code


def leave() -> None:
    """Callback: be in no room."""
    left = current()
    _be_in("", None)
    st.session_state[LEFT] = left
    if PARAMETER in st.query_params:
        del st.query_params[PARAMETER]


def _be_in(code: str, taught: OpenedRoom | None) -> None:
    st.session_state.update({CODE: code, TAUGHT: taught, VOTE: None, LEFT: ""})


def become_teacher(secret: str) -> bool:
    """Teach in the room that the session is in, if the secret is that room's; whether it is."""
    code = current()
    if not ROOMS.is_teacher(code, secret):
        return False
    st.session_state[TAUGHT] = OpenedRoom(code, secret)
    return True


def tell(page: str, parameters: Mapping[str, str]) -> None:
    """Have the class go where its teacher is, if this is one."""
    opened, here = taught(), public()
    if page in (PAGE, PROJECTOR):
        page = ""  # no navigation, but the teacher's view is known from the start
    if opened is not None and (page or (here is not None and not here.page)):
        with contextlib.suppress(RoomRefusedError):  # a room that is gone moves nobody; the page says so
            ROOMS.do(opened, Room.move, page, parameters)


def public() -> Public | None:
    """The public state of the session's room; None outside of rooms."""
    return ROOMS.public(current())


def away() -> Sentence | None:
    """What there is to say while the store of the rooms does not answer; None while it does."""
    if not ROOMS.store.away:
        return None
    return say(
        "The store of the rooms at {host} (GLASSFORMER_STORE) does not answer; once it does, rooms go on by "
        "themselves.",
        host=ROOMS.store.away,
    )


def vote_given() -> tuple[int, int] | None:
    """The round in which the session voted last, and what, for its browser to post; None if it has not."""
    return st.session_state.get(VOTE)


def vote(choice: int) -> None:
    """Callback: vote in the round that is open, for a choice from 0."""
    here = public()
    if here is not None and here.taken:
        st.session_state[VOTE] = here.round, choice


def has_voted() -> bool:
    """Whether the session voted in the latest round of its room."""
    here, given = public(), vote_given()
    return here is not None and given is not None and given[0] == here.round


def name_of(step: str, run: str) -> str:
    """The name of the question that a step of a lesson is; the run is "" where everybody has their own."""
    return f"{step}.{run}" if run else step


def asks(step: str, run: str) -> Public | None:
    """Where the session's room stands, if it asks the question of this step of a lesson; else None."""
    here = public()
    name = here.question.name if here is not None and here.question is not None else ""
    return here if name and name in (name_of(step, run), name_of(step, "")) else None


class _RoomAddress(AddressPart):
    names = NAMES

    def begin(self) -> None:
        begin()

    def beside(self, parameters: Mapping[str, str]) -> dict[str, str]:
        return {PARAMETER: current()} if current() else {}

    def take_notes(self) -> tuple[str, ...]:
        return st.session_state.pop(NOTES, ())

    def published(self, page: str, written: Mapping[str, str]) -> None:
        own = {*NAMES, *language.NAMES}
        tell(page, {name: text for name, text in global_params.beside(written).items() if name not in own})

    def guidance(self) -> Guidance:
        if not current():
            return Guidance()
        leads, room = taught() is not None, public()
        types, bare = leads or (room is not None and room.own), {} if room is None else room.parameters
        return Guidance(follows=not leads, leads=leads, types=types, bare=bare)


ADDRESS = _RoomAddress()
