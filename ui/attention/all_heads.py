"""All heads of all layers: the chosen attention large, the others beside it."""

from __future__ import annotations

from functools import partial
from typing import Final

from transformer.model.anatomy import Kind
from ui.attention import controls
from ui.maps.grid import grid, is_long
from ui.runs.open_maps import AnyRun
from ui.shared import drawing
from ui.shared.door import st

GRIDS: Final[dict[Kind, str]] = {
    "encoder": "overview_encoder",
    "decoder": "overview_decoder",
    "cross": "overview_cross",
}


def draw(run: AnyRun) -> None:
    """Draw the part "All heads" of the Attention page."""
    view = run.view
    others = [kind for kind in run.trace.kinds if kind != view.kind]
    if not others:
        _grid(run, view.kind, large=True)
        return
    if is_long(run, view.kind):
        _grid(run, view.kind, large=True)
        drawing.beside(*(partial(_grid, run, kind, large=False) for kind in others), gap="medium")
        return
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _grid(run, view.kind, large=True)
    with right:
        for kind in others:
            _grid(run, kind, large=False)


def _grid(run: AnyRun, kind: Kind, *, large: bool) -> None:
    grid(run, kind, name=GRIDS[kind], take=partial(controls.open_head, run.slot), large=large)
