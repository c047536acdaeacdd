"""The line at the foot of every page for who is in a room; it holds the browser's connection to the room.

The browser hears of the teacher's moves by itself and opens the address as a link would be opened: a run of the
script for each move, none for a step until it has settled, and none while nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import streamlit as st

from ui.components.assets import ignore, loader, wrapped

_MOUNT = st.components.v2.component("glassformer_room", js=loader("room_bar"))
Role = Literal["student", "teacher", "viewer"]


def room_bar(
    code: str,
    *,
    key: str,
    role: Role,
    secret: str = "",
    vote: tuple[int, int] | None = None,
    lesson: bool = False,
    on_teacher: Callable[[], None] | None = None,
    on_left: Callable[[], None] | None = None,
) -> None:
    """Draw the line.

    Args:
        code: Of the room.
        key: Names this place on the page.
        role: A student is counted and follows; a viewer, such as a projector, only looks on.
        secret: The teacher's, for the teacher's own browser, whose tab keeps it for a reload.
        vote: The round, and which choice the student committed to, from 0; the browser posts it with its token.
        lesson: Whether the session is in a lesson, whatever the address says.
        on_teacher: Called when a tab that has kept one was loaded again; `kept_secret(key)` tells it.
        on_left: Called when the reader leaves a room that has ended.
    """
    payload = {
        "code": code,
        "role": role,
        "secret": secret,
        "choice": None if vote is None else dict(zip(("round", "choice"), vote, strict=True)),
        "lesson": lesson,
    }
    _MOUNT(
        key=key,
        data=wrapped(payload),
        on_teacher_change=on_teacher or ignore,
        on_votes_change=ignore,
        on_left_change=on_left or ignore,
    )


def kept_secret(key: str) -> str:
    """What the teacher's tab kept; for use inside an `on_teacher` callback."""
    state = st.session_state.get(key)
    secret = state.get("teacher") if isinstance(state, dict) else None
    return secret if isinstance(secret, str) else ""
