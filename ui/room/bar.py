"""In which room the session is, at the foot of every page."""

from __future__ import annotations

from ui.components.room.view import kept_secret, room_bar
from ui.state import in_room

BAR = "room_bar"


def bar() -> None:
    """Draw the line, where the session is in a room; call it on every page, before that."""
    code, taught = in_room.current(), in_room.taught()
    if not code:
        return
    if taught is None:
        room_bar(code, key=BAR, role="student", on_teacher=_know_again)
    else:
        room_bar(code, key=BAR, role="teacher", secret=taught.secret)


def _know_again() -> None:
    in_room.become_teacher(kept_secret(BAR))
