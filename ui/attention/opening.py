"""Which weight the part "One weight" shows: what was chosen, and where nothing was, one that is worth a first look.

The address says nothing of the page's own choice. Once the reader has stepped, the row is that of the step.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from transformer.analysis.worth_seeing import Tops, worth_seeing
from transformer.model.anatomy import EVERY_PART
from ui.runs.looking import Looking
from words import say

WHY_THIS_STEP = say(
    "No weight was chosen yet. This one is worth a first look: the row is that of the step at which the model was "
    "least sure what to write, the head the one whose largest weight in that row is nearest to 0.6."
)
WHY_THIS_ROW = say(
    "No weight was chosen yet. This one is worth a first look: of all heads and rows, the one whose largest weight "
    "is nearest to 0.6."
)


@dataclass(frozen=True)
class Opening:
    """What the part opens on."""

    layer: int  # from 0
    head: int  # from 0
    # The row, if it is the page's own choice; None where the reader's choice or the step decides.
    query: int | None = None


def opening(looking: Looking) -> Opening:
    """The head and the row that are shown."""
    view = looking.view
    if view.layer is not None and view.head is not None:
        return Opening(view.layer, view.head)
    each = partial(_tops, looking)
    cell = worth_seeing(looking.trace, view.kind, n_steps=looking.n_steps, layer=view.layer, each=each)
    steps = EVERY_PART.attention(view.kind).stack == "decoder"
    free = view.query is None and not (steps and view.step)
    return Opening(cell.layer, cell.head, cell.query if free else None)


def _tops(looking: Looking, tops: Tops, layers: tuple[int, ...]) -> list[np.ndarray]:
    return looking.each(looking.view.kind, tops, key=("worth_seeing", looking.n_steps), layers=layers)


def why(looking: Looking) -> str:
    """Why this weight, where the page chose it."""
    return WHY_THIS_STEP if EVERY_PART.attention(looking.view.kind).stack == "decoder" else WHY_THIS_ROW
