"""The controls of the page What matters: one row with the part, and what a part asks beside it."""

from __future__ import annotations

from typing import Final

from transformer.model.anatomy import anatomy
from ui.matters.head_effect_pictures import MATTERS
from ui.matters.measures import EFFECTS
from ui.matters.parts_of_logit import rival_of
from ui.matters.pieces_words import BASELINES
from ui.runs.open_run import OpenRun
from ui.runs.show import choose_part
from ui.shared import choices
from ui.state.view import EffectAt
from words import say

N_RIVALS: Final = 10
PLACES: Final[dict[EffectAt, str]] = {"output": say("Whole output"), "step": say("This step")}


def draw(run: OpenRun) -> str:
    """Draw the choice of a part, and its own controls; returns the part that is shown."""
    with choices.bar(run.slot):
        panel = choose_part(MATTERS, run.slot)
        if panel == "heads" and run.trace.n_steps:
            choices.menu(choices.field(run.slot, "effect"), say("Measure"), EFFECTS, bare=True, width=250)
            choices.choose(choices.field(run.slot, "effect_at"), say("Measured on"), PLACES, bare=True)
        elif panel == "pieces" and anatomy(run.checkpoint.config).writes:
            _pieces(run)
        elif panel == "logit" and anatomy(run.checkpoint.config).writes:
            _rival(run)
    return panel


def _pieces(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.looking.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    layer = choices.menu_of_layers(choices.field(run.slot, "layer"), n_layers)
    choices.menu_of_heads(choices.field(run.slot, "head"), n_heads, disabled=layer is None)
    choices.menu(choices.field(run.slot, "begin"), say("Integrated gradients"), BASELINES, bare=True, width=280)


def _rival(run: OpenRun) -> None:
    """The other piece that a logit is compared with: one of the step's candidates, or one that was."""
    if run.looking.covered:
        return
    trace, kept = run.trace, rival_of(run)
    ids = [one.id for one in trace.step(run.view.step, top_k=N_RIVALS).candidates if not one.chosen]
    ids += [kept] if kept is not None and kept not in ids else []
    options: dict[int | None, str] = {None: say("Its logit")}
    options |= {i: say("Less the logit of “{piece}”", piece=trace.vocabulary[i]) for i in ids}
    choices.menu(choices.field(run.slot, "rival"), say("Compared with"), options, bare=True, width=280)
