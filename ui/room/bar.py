"""In which room the session is, at the foot of every page."""

from __future__ import annotations

from ui.components.room.view import kept_secret, room_bar
from ui.state import in_room, lesson

BAR = "room_bar"


def bar(page: str) -> None:
    """Draw the line, where the session is in a room; call it on every page, before that.

    Args:
        page: The path of the page.
    """
    code, taught = in_room.current(), in_room.taught()
    if not code:
        return
    if page == in_room.PROJECTOR:
        room_bar(code, key=BAR, role="viewer")
    elif taught is None:
        in_lesson = lesson.place() is not None
        vote = in_room.vote_given()
        room_bar(
            code, key=BAR, role="student", vote=vote, lesson=in_lesson, on_teacher=_know_again, on_left=in_room.leave
        )
    else:
        room_bar(code, key=BAR, role="teacher", secret=taught.secret, on_left=in_room.leave)


def _know_again() -> None:
    in_room.become_teacher(kept_secret(BAR))
