"""What stands over each of the two runs: which it is."""

from __future__ import annotations

from typing import Final

from ui.frame.sidebar import HOW_NAMES
from ui.runs.change_chips import told
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.runs.step_rows import heads_name
from ui.shared import drawing
from ui.state.view import Compared
from words import Sentence, joined, say

OTHER: Final[dict[Compared, Sentence]] = {
    "changed": say("**Right:** with a change"),
    "sentences": say("**Right:** another sentence"),
    "checkpoints": say("**Right:** another checkpoint"),
    "branches": say("**Right:** another branch"),
    "heads": say("**Right:** another head"),
    "ways": say("**Right:** run in another way"),
}
CONTROL: Final = say("**Left:** the model as it is")
CHANGED: Final = say("**Right:** with the change")
CHANGES: Final = say("**Right:** with the changes")


def main(run: OpenRun, compared: Compared, *, changed: bool) -> str:
    """What stands over the run of the main slot.

    Args:
        run: That run.
        compared: What is compared.
        changed: Whether it is a changed one, on the right.
    """
    if changed:
        return CHANGED if len(run.trace.query.interventions) == 1 else CHANGES
    if compared == "sentences":
        return say("**Left:** “{sentence}”", sentence=drawing.plain(run.trace.query.source))
    if compared == "branches" and run.trace.query.forced:
        forced = run.trace.query.forced
        piece = drawing.plain(run.trace.vocabulary[forced[-1]])
        return say("**Left:** the branch of step {n}, {piece}", n=len(forced), piece=piece)
    if compared == "branches":
        return say("**Left:** the model's own choice")
    if compared == "heads":
        kind = run.view.kind
        name = heads_name(run.trace, run.view, kind)
        return say("**Left:** {attention}, {map}", attention=KIND_NAMES[kind], map=name)
    return say("**Left:** {checkpoint}", checkpoint=drawing.plain(run.checkpoint.name))


def way(run: OpenRun) -> str:
    """How a run was made: how its pieces were chosen, and what was changed."""
    query = run.trace.query
    how = HOW_NAMES[type(query.decoding).__name__.lower()]
    said = say("How the pieces were chosen: {how}.", how=how)
    return joined(" ", [said, told(query.interventions)]) if query.interventions else said


def other(compared: Compared, *, changed: bool) -> str:
    """What stands over the second run.

    Args:
        compared: What is compared.
        changed: Whether it is the control of a changed run, on the left.
    """
    return CONTROL if changed else OTHER[compared]
