"""The part Heads of the page What matters: what the output owes to each head."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.model.anatomy import Kind
from ui.maps.grid import grid
from ui.runs.open_run import OpenRun
from ui.state import session
from ui.state.view import Slot

GRID: Final = "matters_grid"


def draw(run: OpenRun) -> None:
    """Draw the part."""
    grid(run, run.view.kind, name=GRID, take=partial(_look, run.slot), large=True)


def _look(slot: Slot, kind: Kind, layer: int, head: int) -> None:
    """Callback: look at a head."""
    session.replace(slot, kind=kind, layer=layer, head=head)
