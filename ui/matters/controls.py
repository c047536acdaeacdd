"""The controls of the page What matters: which part, and in the same row what else a part asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from transformer.model.anatomy import anatomy
from ui.matters.pieces_words import BASELINES
from ui.matters.rivals import choose_rival
from ui.runs.open_run import OpenRun
from ui.shared import choices
from ui.state.view import MattersPanel
from words import say

PANELS: Final[dict[MattersPanel, str]] = {
    "heads": say("Heads"),
    "pieces": say("Pieces"),
    "logit": say("Logit"),
}


def draw(run: OpenRun) -> MattersPanel:
    """Draw the choice of a part; returns the one that is shown."""
    with choices.bar(run.slot):
        part = choices.choose(choices.field(run.slot, "matters_panel"), say("Part"), PANELS, bare=True)
        if part in _MORE and anatomy(run.checkpoint.config).writes:
            _MORE[part](run)
        return part


def _pieces(run: OpenRun) -> None:
    """Whose weights, and where the line of integrated gradients begins."""
    n_layers, n_heads = run.trace.maps(run.looking.kind).shape[:2]
    choices.let_go(run.slot, n_layers, n_heads)
    layer = choices.menu_of_layers(choices.field(run.slot, "layer"), n_layers)
    choices.menu_of_heads(choices.field(run.slot, "head"), n_heads, disabled=layer is None)
    choices.menu(choices.field(run.slot, "begin"), say("Integrated gradients"), BASELINES, bare=True, width=280)


_MORE: Final[dict[MattersPanel, Callable[[OpenRun], object]]] = {"pieces": _pieces, "logit": choose_rival}
