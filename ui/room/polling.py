"""A class votes: what its teacher does, and the votes once they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from charts.votes import HOW_TO_READ, votes_spec
from ui.room.registry import ROOMS, Opened
from ui.room.room import LEAST_VOTES, Public, Question, RefusedError
from ui.shared import drawing
from ui.shared.door import st
from words import Sentence, joined, say, say_n

LETTERS = "ABCDEFGH"
BARS = "room_votes"
RIGHT_OR_NOT = (say("Right"), say("Not right"))  # the choices where choices are not compared


def controls(taught: Opened, public: Public, *, answer: Callable[[Opened], None] | None = None) -> None:
    """Draw what a teacher does next about the question.

    Args:
        taught: The teacher's room.
        public: Where it stands.
        answer: Shows the answer; None where the app knows none.
    """
    if public.question is None:
        return
    with st.container(horizontal=True, gap="small"):
        if public.taken:
            show = partial(do, ROOMS.show, taught)
            st.button(
                say("Show the votes"), key="room_show", icon=":material/bar_chart:", type="primary", on_click=show
            )
        elif not public.answered:
            again = partial(do, ROOMS.again, taught)
            st.button(say("Vote again"), key="room_again", icon=":material/replay:", on_click=again)
        if public.question.aloud:
            close = partial(do, partial(ROOMS.ask, question=None), taught)
            st.button(say("Close the question"), key="room_close", icon=":material/close:", on_click=close)
        if answer is not None and not public.answered:
            see = partial(answer, taught)
            st.button(say("Show the answer"), key="room_answer", icon=":material/visibility:", on_click=see)


def do(act: Callable[[Opened], None], taught: Opened) -> None:
    """Callback: do something about a room; one that has ended, or has moved on, is left as it is."""
    try:
        act(taught)
    except RefusedError:
        return


def ask_aloud(taught: Opened, number: int, choices: int) -> None:
    """Callback: take votes on what the teacher asks aloud.

    Args:
        taught: The teacher's room.
        number: Which question it is.
        choices: How many letters there are to choose from.
    """
    do(partial(_ask, number=number, choices=choices), taught)


def _ask(taught: Opened, *, number: int, choices: int) -> None:
    text = say("Your teacher asks: which is right?")
    ROOMS.ask(taught, Question(f"aloud.{number}", text, tuple(LETTERS[:choices]), aloud=True))


def lettered(choices: Sequence[str]) -> list[str]:
    """Choices as a class speaks of them, "B. the first piece"; letters, and right or not, are said as they are."""
    if tuple(choices) in (RIGHT_OR_NOT, tuple(LETTERS[: len(choices)])):
        return list(choices)
    return [joined(" ", [f"{letter}.", one]) for letter, one in zip(LETTERS, choices, strict=False)]


def too_few(public: Public) -> Sentence | None:
    """Why votes that were shown are not seen by choice; None if they are, or none are to be seen."""
    if public.taken or not public.shown or public.shown[-1].counts is not None:
        return None
    return say_n(
        "{n} vote: from {least} on, a chart shows what was chosen.",
        "{n} votes: from {least} on, a chart shows what was chosen.",
        public.shown[-1].voted,
        least=LEAST_VOTES,
    )


def has_bars(public: Public) -> bool:
    """Whether `bars` draws something; while votes are taken, those of the round before would lead them."""
    return not public.taken and bool(public.shown) and public.shown[-1].counts is not None


def results(public: Public) -> None:
    """Draw the votes that were shown, or why there are none to see.

    Args:
        public: Where the room stands.
    """
    few = too_few(public)
    if few is not None:
        st.info(few)
    bars(public)


def bars(public: Public, *, key: str = BARS, large: bool = False) -> None:
    """Draw the votes that were shown, if there are enough.

    Args:
        public: Where the room stands.
        key: Names this place on the page.
        large: For a wall.
    """
    question = public.question
    if question is None or not has_bars(public):
        return
    latest = public.shown[-1]
    rounds = [one.counts for one in reversed(public.shown[-2:]) if one.counts is not None]
    title = say_n("{n} vote", "{n} votes", latest.voted)
    drawing.chart(
        votes_spec(rounds, lettered(question.choices), title=title, right=public.right, large=large),
        key=key,
        alt=say("A bar for each choice of the question, as long as the number of votes for it."),
        how_to_read=HOW_TO_READ,
        fit=large,
        of_sentence=False,
        of_lesson=True,
    )
