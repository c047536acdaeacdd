"""Class vote on a running training's next dev loss: the question, the teacher's button, the answer a minute later.

The teacher asks what the dev loss will be in a minute, and the room votes as on any question asked aloud. When the
minute or the training ends, the training's thread shows the votes and the right choice.
"""

import contextlib
from functools import partial
from typing import Final

from glassformer.extensions.rooms import room_session, room_view
from glassformer.extensions.rooms.registry import ROOMS
from glassformer.extensions.rooms.room import OpenedRoom, Question, Room, RoomRefusedError
from glassformer.extensions.training_page import session_trainings, watch_pictures
from glassformer.extensions.training_page.trainings import Training
from glassformer.extensions.training_page.watch_pictures import Watched
from glassformer.shared import drawing
from glassformer.shared.i18n import st
from transformer.i18n import joined, say

AHEAD_SECONDS: Final = 60.0
VOTE_SECONDS: Final = 30.0  # who votes later has seen half of it
LOWER, HIGHER = 0.8, 1.05  # times the current loss: between them it is about the same
ASK: Final = "watch_ask"


def draw(watched: Watched) -> None:
    """Draw what a room is asked about a training, and for its teacher the button that asks."""
    training = watched.training
    public, taught = room_session.public(), room_session.taught()
    if public is None:
        return
    asked = public.question is not None and public.question.name.startswith(_name(training))
    if taught is not None and watched.is_under_way and (not asked or public.answered):
        can_ask = _dev_loss(training) is not None
        st.button(
            say("Ask the class what the loss will do"),
            key=ASK,
            icon=":material/how_to_vote:",
            disabled=not can_ask,
            help=None if can_ask else say("This is possible once there is a dev loss."),
            on_click=_ask,
            args=(taught, training.token),
        )
    if not asked or public.question is None:
        return
    st.markdown(drawing.strong(public.question.text))
    if not room_view.has_bars(public):
        called = room_view.lettered(public.question.choices, right=public.right)
        st.markdown(joined("  \n", [drawing.plain(one) for one in called]))
    if taught is not None:
        room_view.room_counts(key="watch_counts")
        room_view.controls(taught, public)
    room_view.results(public)


def _name(training: Training) -> str:
    """The common prefix of a training's questions."""
    return f"training.{training.token}."


def _dev_loss(training: Training) -> float | None:
    found = watch_pictures.growing(training)
    return found.dev[-1][1] if found is not None and found.dev else None


def _ask(taught: OpenedRoom, token: str) -> None:
    """Callback: ask the question, take votes for a while, and have the training answer it."""
    training, public = session_trainings.trainings().find(token), ROOMS.public(taught.code)
    now = None if training is None else _dev_loss(training)
    if training is None or public is None or now is None:
        return
    name, limits = f"{_name(training)}{public.round + 1}", (LOWER * now, HIGHER * now)
    room_view.do(taught, Room.ask, _question(name, now, limits))
    room_view.do(taught, Room.start, VOTE_SECONDS, 0.0)
    session_trainings.trainings().when(training, AHEAD_SECONDS, partial(_answer, taught, name, training, limits))


def _question(name: str, now: float, limits: tuple[float, float]) -> Question:
    low, high = (f"{limit:.3g}" for limit in limits)
    text = say(
        "The dev loss is {now:.3g} now. What will it be in {seconds:.0f} seconds, or at the end of the training if "
        "that comes first?",
        now=now,
        seconds=AHEAD_SECONDS,
    )
    choices = (
        say("below {low}", low=low),
        say("from {low} to {high}, about as now", low=low, high=high),
        say("above {high}", high=high),
    )
    return Question(name, text, choices, aloud=True)


def _answer(taught: OpenedRoom, name: str, training: Training, limits: tuple[float, float]) -> None:
    """Show the votes and the right choice, unless the room has a new question."""
    public, now = ROOMS.public(taught.code), _dev_loss(training)
    if public is None or public.question is None or public.question.name != name or now is None:
        return
    right = 0 if now < limits[0] else 2 if now > limits[1] else 1
    with contextlib.suppress(RoomRefusedError):
        ROOMS.do(taught, Room.answer, right)
