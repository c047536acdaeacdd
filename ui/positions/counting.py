"""How many positions the Positions page draws."""

from __future__ import annotations

from ui.shared import choices
from ui.state import session
from ui.state.view import Slot, View
from words import say

COUNT = "positions_count"
DEFAULT_COUNT = 64
COUNTS = (16, 32, 64, 128, 256, 512)


def chosen(view: View, most: int) -> int:
    """How many of `most` positions are drawn."""
    return min(view.drawn or DEFAULT_COUNT, most)


def choose(max_len: int, slot: Slot) -> None:
    """Draw the choice, where there is one."""
    options = [count for count in COUNTS if count < max_len]
    options += [max_len] if max_len <= COUNTS[-1] else []
    own = max((n for n in options if n <= DEFAULT_COUNT), default=max_len)
    kept = choices.field(slot, "drawn", key=COUNT)
    if kept.value not in options:
        session.replace(slot, drawn=None)
    if len(options) > 1:
        counts = {count: say("{n} positions", n=count) for count in options}
        choices.menu(kept, say("Positions drawn"), counts, otherwise=own, bare=True, width=136)
