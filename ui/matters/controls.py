"""The controls of the page What matters: which part. What else a part asks, it draws itself, in the same row."""

from __future__ import annotations

from typing import Final

from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.state.view import MattersPanel
from words import say

PANELS: Final[dict[MattersPanel, str]] = {
    "heads": say("Heads"),
}


def draw(run: OpenRun) -> MattersPanel:
    """Draw the choice of a part; returns the one that is shown."""
    with choices.bar(run.slot):
        return choices.choose(choices.field(run.slot, "matters_panel"), say("Part"), PANELS, bare=True)
