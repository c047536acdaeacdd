"""The control of the Doctor page: which part."""

from __future__ import annotations

from typing import Final

from ui.shared import choices
from ui.state.view import MAIN, DoctorPanel
from words import say

PANELS: Final[dict[DoctorPanel, str]] = {"findings": say("Findings"), "parameters": say("Parameters")}


def part() -> DoctorPanel:
    """Draw the choice of a part; returns the one that is shown."""
    with choices.bar(MAIN):
        return choices.choose(choices.field(MAIN, "doctor_panel"), say("Part"), PANELS, bare=True)
