"""Class polls: teacher controls and vote results."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from glassformer.charts.histograms import HOW_TO_READ_VOTES, RIGHT, votes_spec
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.room import OpenedRoom, Public, Room, RoomRefusedError
from glassformer.shared import drawing
from glassformer.shared.controls import KEEP
from glassformer.shared.i18n import st
from transformer.i18n import Sentence, joined, say, say_n

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
