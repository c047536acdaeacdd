"""Which token of a stack is looked at: a source piece, or of what the decoder reads the step whose row it is.

A row of a prompt, which a decoder alone reads first, belongs to no step: it is looked at as a row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from transformer.model.anatomy import StackName, anatomy
from transformer.model.config import ModelConfig
from ui.runs.open_run import OpenRun
from ui.runs.sides import SIDE_OF, SIDES
from ui.shared import choices
from ui.shared.clicks import on_click
from ui.state import session
from ui.state.click import place_below
from ui.state.view import Side, Slot
from words import say, say_n


def sides_of(config: ModelConfig) -> list[Side]:
    """The sides of the stacks that a model has."""
    return [SIDE_OF[stack.name] for stack in anatomy(config).stacks]


def choose_side(run: OpenRun, kept: choices.Kept | None = None) -> Side:
    """Draw the choice of a side, among those that the model has.

    Args:
        run: What is looked at.
        kept: What is chosen, and where it goes; the view's side if it is nothing more.
    """
    kept = kept or choices.field(run.slot, "side")
    return choices.choose(kept, say("Side"), {side: SIDES[side] for side in sides_of(run.checkpoint.config)},
                          bare=True)  # fmt: skip


def writes(run: OpenRun, stack: StackName) -> bool:
    """Whether a stack is the one that writes: its vectors become logits."""
    parts = anatomy(run.checkpoint.config)
    return parts.writes and stack == parts.stacks[-1].name


def pieces_of(run: OpenRun, side: Side) -> list[str]:
    """The tokens of a side that may be seen; of the output the rows "reads → predicts"."""
    return list(run.trace.src_pieces) if side == "source" else run.looking.row_labels()


def in_words(count: int, side: Side) -> str:
    """A number of tokens."""
    if side == "source":
        return say_n("{n:,} source token", "{n:,} source tokens", count)
    return say_n("{n:,} target token", "{n:,} target tokens", count)


def chosen_row(run: OpenRun) -> int:
    """The row of the decoder that is looked at: the current step's, or one of the prompt that was chosen."""
    query, first = run.view.query, run.trace.first_row
    return query if query is not None and query < first else run.trace.row_of(run.view.step)


def choose(run: OpenRun, side: Side, pieces: list[str], *, key: str, width: int) -> int:
    """Draw the choice of a token."""
    token = min(run.view.key or 0, len(pieces) - 1) if side == "source" else chosen_row(run)
    label = say("Token") if side == "source" else say("Token (its step)")
    kept = choices.Kept(run.key(key), token, taking(run, side))
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
