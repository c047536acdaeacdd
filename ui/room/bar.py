"""In which room the session is, at the foot of every page."""

from __future__ import annotations

from ui.components.room.view import kept_secret, room_bar
from ui.shared.door import st
from ui.state import in_room, lesson

BAR = "room_bar"
# `--gf-room` is how high the line is (`ui/components/room/view.js`); nothing lies under it.
_RULES = """
<style>
.st-key-room_bar { position: fixed; z-index: 999991; bottom: 0.5rem; left: 0.5rem; width: 17.75rem !important; }
:root.gf-present .st-key-room_bar { width: auto !important; }
.stApp { --gf-under: var(--gf-room, 3rem); }
.stApp [data-testid="stSidebarContent"] { padding-bottom: calc(var(--gf-room, 5rem) + 1rem); }
.stApp [data-testid="stMainBlockContainer"] { padding-bottom: max(4rem, calc(var(--gf-room, 3rem) + 1.5rem)); }
@media (max-width: 1100px) {
  .stApp .st-key-lesson_panel { bottom: calc(var(--gf-room, 3rem) + 0.75rem); }
}
@media (min-width: 769px) and (max-width: 1100px) {
  :root:not(.gf-present) [data-testid="stSidebar"][data-collapsed="false"] ~ * .st-key-lesson_panel { bottom: 0; }
}
@media (max-width: 640px) {
  .st-key-room_bar, :root.gf-present .st-key-room_bar { bottom: 0; left: 0; width: 100vw !important; }
  .stApp [data-testid="stMainBlockContainer"] { padding-bottom: calc(var(--gf-room, 3rem) + 5rem); }
  .stApp .st-key-lesson_panel { bottom: var(--gf-room, 3rem); }
}
</style>
"""


def bar(page: str) -> None:
    """Draw the line, where the session is in a room; call it on every page, before that.

    Args:
        page: The path of the page.
    """
    code, taught = in_room.current(), in_room.taught()
    if not code:
        return
    st.html(_RULES)
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
