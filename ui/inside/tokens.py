"""The choice of a side and of a token of it, in a menu or by a click."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ui.inside.looked_at import sides_of, token_of
from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDES
from ui.shared import choices
from ui.shared.clicks import on_click
from ui.state import session
from ui.state.click import place_below
from ui.state.view import Side, Slot
from words import say


def choose_side(run: OpenRun, kept: choices.Kept | None = None) -> Side:
    """Draw the choice of a side, among those that the model has.

    Args:
        run: What is looked at.
        kept: What is chosen, and where it goes; the view's side if it is nothing more.
    """
    kept = kept or choices.field(run.slot, "side")
    return choices.choose(kept, say("Side"), {side: SIDES[side] for side in sides_of(run.checkpoint.config)},
                          bare=True)  # fmt: skip


def choose(run: OpenRun, side: Side, pieces: list[str], *, key: str, width: int) -> int:
    """Draw the choice of a token."""
    label = say("Token") if side == "source" else say("Token (its step)")
    kept = choices.Kept(run.key(key), token_of(run, side, pieces), taking(run, side))
    return choices.menu(kept, label, choices.labelled(pieces), bare=True, width=width)


def taking(run: OpenRun, side: Side) -> Callable[[object], None]:
    """Callback with a token, to look at it; it holds no run."""
    return partial(_take, run.slot, side, run.trace.first_row)


def _take(slot: Slot, side: Side, first_row: int, token: object) -> None:
    """Look at a token; one of the output belongs to a step, so the step follows."""
    if not isinstance(token, int):
        return
    if side == "source":
        session.replace(slot, key=token)
    elif token < first_row:
        session.replace(slot, query=token)
    else:
        session.replace(slot, query=None)
        session.move_to(slot, token - first_row)


def clicked(run: OpenRun, side: Side, chart: str, count: int) -> Callable[[], None]:
    """Callback of a chart whose marks carry tokens, of which there are `count`; it holds no run and no arrays."""
    return on_click(run.key(chart), place_below(count), taking(run, side))
