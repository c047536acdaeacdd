"""The controls of the page What matters: one row with the part, and what a part asks beside it."""

from __future__ import annotations

from typing import Final

from transformer.model.anatomy import anatomy
from ui.matters.head_effect_pictures import MATTERS
from ui.matters.measures import EFFECTS
from ui.matters.pieces_words import BASELINES
from ui.matters.rivals import choose_rival
from ui.runs.open_run import OpenRun
from ui.runs.show import choose_part
from ui.shared import choices
from ui.state.view import EffectAt
from words import say

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
            choose_rival(run)
    return panel


def _pieces(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.looking.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    layer = choices.menu_of_layers(choices.field(run.slot, "layer"), n_layers)
    choices.menu_of_heads(choices.field(run.slot, "head"), n_heads, disabled=layer is None)
    choices.menu(choices.field(run.slot, "begin"), say("Integrated gradients"), BASELINES, bare=True, width=280)
