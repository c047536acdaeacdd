"""The other piece that a logit is compared with: one of the step's candidates."""

from __future__ import annotations

from typing import Final

from ui.matters.logit_words import rival_of
from ui.runs.open_run import OpenRun
from ui.shared import choices
from words import say

N_RIVALS: Final = 10


def choose_rival(run: OpenRun) -> int | None:
    """Draw the choice; returns the piece's id, None for none. One that is no candidate any more stays a choice."""
    if run.looking.covered:
        return None
    return choices.menu(choices.field(run.slot, "rival"), say("Compared with"), _options(run), bare=True, width=280)


def _options(run: OpenRun) -> dict[int | None, str]:
    trace, step = run.trace, run.view.step
    ids = [one.id for one in trace.step(step, top_k=N_RIVALS).candidates if not one.chosen]
    kept = rival_of(run)
    ids += [kept] if kept is not None and kept not in ids else []
    options: dict[int | None, str] = {None: say("Its logit")}
    return options | {i: say("Less the logit of “{piece}”", piece=trace.vocabulary[i]) for i in ids}
