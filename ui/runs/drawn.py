"""What a page draws, whatever it is of: a run, or maps that were given.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass

from transformer.checkpoint.load import Checkpoint
from ui.runs.given_maps import GivenLooking
from ui.runs.step_rows import Looking
from ui.state.view import Slot, View


@dataclass(frozen=True)
class Drawn:
    """Something with maps in a slot of a page."""

    looking: Looking | GivenLooking  # the run or the maps, and what of them is looked at
    checkpoint: Checkpoint | None  # what was run; None for given maps

    @property
    def view(self) -> View:
        """What is looked at."""
        return self.looking.view

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.looking.slot

    def key(self, name: str) -> str:
        """The key of something that is drawn from it; a page may draw another beside it."""
        return f"{self.slot}{name}"


@dataclass(frozen=True)
class OfDrawn:
    """What a part of a page computes for all its pictures, from a run or from given maps."""

    run: Drawn

    @property
    def slot(self) -> Slot:
        """Where it is drawn."""
        return self.run.slot
