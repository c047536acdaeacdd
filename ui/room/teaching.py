"""What a teacher sees of a room on its page: how students come in, what they are asked, how it ends."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

from ui.components.room.counts import room_counts
from ui.room import polling
from ui.room.registry import ROOMS, Opened
from ui.room.room import Public
from ui.shared.door import st
from ui.state import in_room, language
from words import say

OWN, CHOICES = "room_own", "room_choices"
MOST_ALOUD = 6  # choices of a question that is asked aloud
_SENTENCES = {False: say("Everybody looks at mine"), True: say("Everybody has their own")}


def draw(taught: Opened, public: Public) -> None:
    """Draw the teacher's side of the page.

    Args:
        taught: The teacher's room.
        public: Where it stands.
    """
    st.subheader(say("You teach in room {code}.", code=taught.code), anchor=False)
    room_counts(key="room_counts")
    st.markdown(say("Students join at this address, or type the code on this page:"))
    st.code(join_address(taught.code), language=None)
    st.markdown(say("Now go to any page: the class follows each of your moves."))
    _sentences(taught, public)
    _voting(taught, public)
    with st.container(horizontal=True, gap="small"):
        wall = f"{in_room.PROJECTOR}?{in_room.PARAMETER}={taught.code}&{language.PRESENT}=1"
        st.link_button(say("Open the projector view"), f"{base()}/{wall}", icon=":material/cast_for_education:")
        with st.popover(say("My own link"), icon=":material/key:"):
            st.markdown(say("Whoever opens this link teaches in this room. Keep it to yourself, and off the wall."))
            own = f"{in_room.PAGE}?{in_room.PARAMETER}={taught.code}&{in_room.SECRET}={taught.secret}"
            st.code(f"{base()}/{own}", language=None)
        st.button(say("End the room"), key="room_end", on_click=_end, icon=":material/close:")


def _sentences(taught: Opened, public: Public) -> None:
    st.session_state[OWN] = public.own
    st.segmented_control(
        say("Sentence"),
        list(_SENTENCES),
        key=OWN,
        format_func=_SENTENCES.__getitem__,
        required=True,
        on_change=_let_own,
        args=(taught,),
    )
    if public.own:
        st.caption(say("Choices on different sentences cannot be compared: votes show how many were right."))


def _let_own(taught: Opened) -> None:
    own = bool(st.session_state.get(OWN))
    polling.do(lambda room: ROOMS.let_own(room, own), taught)


def _voting(taught: Opened, public: Public) -> None:
    st.markdown(say("In a lesson the class votes on each question. You can also ask one aloud:"))
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
    polling.controls(taught, public)
    polling.results(public)


def _ask(taught: Opened, number: int) -> None:
    polling.ask_aloud(taught, number, st.session_state.get(CHOICES) or 4)


def _end() -> None:
    taught = in_room.taught()
    if taught is not None:
        polling.do(ROOMS.end, taught)
    in_room.leave()


def join_address(code: str) -> str:
    """The address at which a browser joins a room, as this visitor's browser would write it."""
    return f"{base()}/?{in_room.PARAMETER}={code}"


def base() -> str:
    """The address of the app, as this visitor's browser writes it."""
    found = urlsplit(st.context.url or "")
    return f"{found.scheme}://{found.netloc}{found.path.rpartition('/')[0]}"
