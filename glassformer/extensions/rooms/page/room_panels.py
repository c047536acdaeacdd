"""The page about rooms: to open one, to join one, and what is known of the one that the session is in.

That also stands at the foot of every page, as a line.
"""

from functools import partial
from urllib.parse import urlencode

from glassformer.extensions.rooms import in_room
from glassformer.extensions.rooms.components.room.room_view import kept_secret, room_bar
from glassformer.extensions.rooms.page import polling, teaching
from glassformer.extensions.rooms.page.projector_style import BAR_RULES
from glassformer.extensions.rooms.server import codes
from glassformer.extensions.rooms.server.public import RefusedError
from glassformer.extensions.rooms.server.registry import MOST_OF_CLIENT, OPENED_A_SECOND, ROOMS
from glassformer.extensions.rooms.server.store import IDLE_SECONDS, MOST_ROOMS
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import apart, session
from transformer.i18n import say

TYPED = "room_typed"
REFUSED = "room_refused"
BAR = "room_bar"

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
    "crowded": say(
        "Your network has {n} rooms here, and may have no more. End one, then try again.", n=MOST_OF_CLIENT
    ),
    "too-often": say("You have opened many rooms. Wait {n} seconds, then try again.", n=round(1 / OPENED_A_SECOND)),
}
MEANT_FOR = say("A room is meant for a class of about 30 to 100 people on one server.")


def draw() -> None:
    """Draw what the session can do about rooms."""
    drawing.notes(session.take_notes())
    away = in_room.away()
    if away is not None:
        st.warning(away, icon=":material/cloud_off:")
    code, taught = in_room.current(), in_room.taught()
    public = in_room.public()
    if taught is not None and public is not None and ROOMS.is_teacher(code, taught.secret):
        teaching.draw(taught, public)
    elif public is not None:
        _joined(code)
        polling.results(public)
    else:
        _outside(code)
    st.caption(KEPT_SHARED if ROOMS.is_shared else KEPT)
    if not ROOMS.is_shared:
        st.caption(MEANT_FOR)


def _outside(code: str) -> None:
    teaching.last()
    if code and not ROOMS.away:
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
        st.caption(
            say("You need neither an account nor a name. Once you join, your page goes where the teacher goes.")
        )
    with teach:
        st.subheader(say("Open a room"), anchor=False)
        st.button(say("Open a room"), key="room_open", on_click=_open, icon=":material/meeting_room:")
        st.caption(say("For teachers: your class follows you through the app, and votes before an answer is shown."))


def _join() -> None:
    typed = st.session_state.get(TYPED) or ""
    code = codes.read_code(typed)
    if code and not in_room.may_look_for(code):
        st.session_state[REFUSED] = in_room.TOO_MANY
    elif code and ROOMS.public(code) is not None:
        in_room.enter(code)
    elif typed and not ROOMS.away:
        st.session_state[REFUSED] = say(
            "There is no room with this code. A code has 6 letters and digits, such as K7MPR4."
        )


def _open() -> None:
    try:
        in_room.teach(ROOMS.open(*in_room.asking()))
    except RefusedError as refused:
        if not ROOMS.away:
            st.session_state[REFUSED] = _WHY_NOT[refused.why]


def _joined(code: str) -> None:
    st.subheader(say("You are in room {code}.", code=code), anchor=False)
    st.markdown(
        say(
            "Your page goes where the teacher goes. At any time, you can look around on your own and come back, "
            "using the line at the bottom of each page."
        )
    )
    st.button(say("Leave the room"), on_click=in_room.leave, icon=":material/logout:")


def bar(page: str) -> None:
    """Draw the line, where the session is in a room; call it on every page, before that."""
    code, taught = in_room.current(), in_room.taught()
    if not code:
        return
    st.html(BAR_RULES)
    if page == in_room.PROJECTOR:
        room_bar(code, key=BAR, role="viewer")
    elif taught is None:
        at, in_lesson = f"{page}?{urlencode(st.query_params.to_dict())}", apart.guidance().is_set
        line = partial(room_bar, code, key=BAR, role="student", on_teacher=_know_again, on_left=in_room.leave)
        line(vote=in_room.vote_given(), at=at, lesson=in_lesson)
    else:
        room_bar(code, key=BAR, role="teacher", secret=taught.secret, on_left=in_room.leave)


def _know_again() -> None:
    in_room.become_teacher(kept_secret(BAR))
