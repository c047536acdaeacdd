"""Which token of a stack is looked at: a source piece, or of the output the step whose row it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.shared.clicks import on_click, place_below
from ui.state import session
from ui.state.view import Side, Slot

AXES: Final[dict[Side, str]] = {"source": "Source piece", "target": "Reads → predicts"}


def pieces_of(run: OpenRun, side: Side) -> list[str]:
    """The tokens of a side that may be seen; of the output the rows "reads → predicts"."""
    return list(run.trace.src_pieces) if side == "source" else run.looking.row_labels()


def choose(run: OpenRun, side: Side, pieces: list[str], *, key: str, width: int) -> int:
    """Draw the choice of a token."""
    token = min(run.view.key or 0, len(pieces) - 1) if side == "source" else run.view.step
    label = "Token" if side == "source" else "Token (its step)"
    kept = choices.Kept(run.key(key), token, partial(take, run.slot, side))
    return choices.menu(kept, label, choices.labelled(pieces), width=width)


def take(slot: Slot, side: Side, token: object) -> None:
    """Callback: look at a token; one of the output belongs to a step, so the step follows."""
    if not isinstance(token, int):
        return
    if side == "source":
        session.replace(slot, key=token)
    else:
        session.move_to(slot, token)


def clicked(run: OpenRun, side: Side, chart: str, count: int) -> Callable[[], None]:
    """Callback of a chart whose marks carry tokens, of which there are `count`; it holds no run and no arrays."""
    return on_click(run.key(chart), place_below(count), partial(take, run.slot, side))
