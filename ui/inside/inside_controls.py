"""Controls of the Inside page: the row of its parts, and the choice of a side and of a token, which parts share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ui.frame.sentence_stepper import Still, one_token
from ui.inside.looked_at import INSIDE, sides_of, token_of
from ui.runs.open_run import OpenRun
from ui.runs.show import choose_part
from ui.runs.sides import SIDES
from ui.shared import choices
from ui.state import session
from ui.state.view import Side, Slot
from words import say


def draw(run: OpenRun) -> Any:
    """Draw it in a row, which is returned: the part adds its own controls."""
    row = choices.bar(run.slot)
    with row:
        choose_part(INSIDE, run.slot)
    return row


def still(run: OpenRun) -> Still | None:
    """What a part looks at in which nothing moves with the step: the model as such, and the source."""
    panel, sides = run.view.inside_panel, sides_of(run.checkpoint.config)
    if panel == "model":
        return Still()
    on_source = "target" not in sides or run.view.side == "source"
    return one_token(run, run.view.key or 0) if on_source and panel != "lens" else None


def choose_side(run: OpenRun, kept: choices.Kept | None = None) -> Side:
    """Draw the choice of a side, among those that the model has; it is the view's if no more hangs on it."""
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
