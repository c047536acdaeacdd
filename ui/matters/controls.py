"""The controls of the page What matters: one row with the part, and what a part asks beside it."""

from __future__ import annotations

from typing import Final

from ui.matters.measures import EFFECTS
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.state.view import EffectAt, MattersPanel
from words import say

PANELS: Final[dict[MattersPanel, str]] = {
    "heads": say("Heads"),
}
PLACES: Final[dict[EffectAt, str]] = {"output": say("Whole output"), "step": say("This step")}


def draw(run: OpenRun) -> MattersPanel:
    """Draw the choice of a part, and its own controls; returns the part that is shown."""
    with choices.bar(run.slot):
        panel = choices.choose(choices.field(run.slot, "matters_panel"), say("Part"), PANELS, bare=True)
        if panel == "heads" and run.trace.n_steps:
            choices.menu(choices.field(run.slot, "effect"), say("Measure"), EFFECTS, bare=True, width=250)
            choices.choose(choices.field(run.slot, "effect_at"), say("Measured on"), PLACES, bare=True)
    return panel
