"""The line at the foot of every page for who is in a room; it holds the browser's connection to the room.

The browser hears of the teacher's moves by itself and opens the address as a link would be opened: a run of the
script for each move, none for a step until it has settled, and none while nothing happens.
"""

from collections.abc import Callable
from typing import Literal

from glassformer.components.element import Element

_BAR = Element("room_bar")
_COUNTS = Element("room_counts")
# A student is counted and follows; a viewer, such as a projector, only looks on.
Role = Literal["student", "teacher", "viewer"]


def room_bar(
    code: str,
    *,
    key: str,
    role: Role,
    secret: str = "",  # the teacher's, for the teacher's own browser, whose tab keeps it for a reload
    # The round, and which choice the student committed to, from 0; the browser posts it with its token.
    vote: tuple[int, int] | None = None,
    at: str = "",  # the address that is drawn, behind the app's own
    lesson: bool = False,  # whether the session is in a lesson, whatever the address says
    # Called when a tab that has kept the secret was loaded again; `told_text(key, "teacher")` tells it.
    on_teacher: Callable[[], None] | None = None,
    on_left: Callable[[], None] | None = None,  # called when the reader leaves a room that has ended
) -> None:
    """Draw the line."""
    choice = None if vote is None else dict(zip(("round", "choice"), vote, strict=True))
    payload = {"code": code, "role": role, "secret": secret, "choice": choice, "lesson": lesson, "at": at}
    _BAR.draw(payload, key=key, hears={"teacher": on_teacher, "votes": None, "left": on_left})


def room_counts(*, key: str, large: bool = False) -> None:
    """Draw how many are in the room and how many have voted, live; large letters are for a wall."""
    _COUNTS.draw({"large": large}, key=key)
