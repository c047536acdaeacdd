"""All heads of all layers: the chosen attention large, the others beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import charts
from charts.following import HOW_TO_READ as HOW_TO_READ_MARK
from charts.grid import HOW_TO_READ, HOW_TO_READ_CLOSED, follow_in_tiles, tile_at
from charts.theme import Spec
from transformer.model.anatomy import Kind, anatomy
from ui.attention import controls
from ui.attention.maps import map_name, mask_reason
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, Sides, sides
from ui.shared import drawing
from ui.shared.clicks import cell_of, on_click
from ui.shared.door import st
from words import joined, say

GRIDS: Final[dict[Kind, str]] = {
    "encoder": "overview_encoder",
    "decoder": "overview_decoder",
    "cross": "overview_cross",
}
OPEN: Final = "overview_open"
ROW: Final = "overview_controls"
LARGE: Final = {"width": 560, "most_cells": 48_000}
SMALL: Final = {"width": 330, "most_cells": 16_000}
CLICK: Final = say("Click a tile to open its head.")
SAME: Final[dict[Kind, str]] = {
    "encoder": say("The same for encoder self-attention."),
    "decoder": say("The same for decoder self-attention."),
    "cross": say("The same for cross-attention."),
}


def draw(run: OpenRun) -> None:
    """Draw the part "All heads" of the Attention page."""
    view = run.view
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(ROW)):
        controls.scales(run.slot)
        st.button(
            say("Open {map}", map=map_name(run.trace, view, view.kind)),
            key=run.key(OPEN),
            on_click=controls.open_head,
            args=(run.slot, view.kind, view.layer, view.head),
            help=say("Opens what is chosen above. The keyboard does it too: choose with Tab and the arrow keys."),
        )
    others = [kind for kind in anatomy(run.checkpoint.config).kinds if kind != view.kind]
    if not others:
        _grid(run, view.kind, large=True)
        return
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _grid(run, view.kind, large=True)
    with right:
        for kind in others:
            _grid(run, kind, large=False)


def _grid(run: OpenRun, kind: Kind, *, large: bool) -> None:
    of = sides(run.looking, kind)
    figure = _figure(run, kind, of, large=large)
    if of.current is not None and figure["data"]:
        follow_in_tiles(figure, [run.trace.row_of(step) for step in range(run.looking.n_steps)])
    allowed = run.trace.mask(kind)
    n_layers, n_heads = run.trace.maps(kind).shape[:2]
    read = [HOW_TO_READ] if large else [SAME[kind]]
    if large:
        read += [HOW_TO_READ_CLOSED] * (not allowed.all()) + [HOW_TO_READ_MARK] * (of.current is not None)
    drawing.chart(
        figure,
        key=run.key(GRIDS[kind]),
        alt=say(
            "{attention} as a grid of small maps, one for each of {layers} layers (rows) and {heads} heads "
            "(columns). The controls above open the map of a single head.",
            attention=KIND_NAMES[kind],
            layers=n_layers,
            heads=n_heads,
        ),
        how_to_read=joined(" ", [*read, CLICK]),
        on_click=_opening(run, kind, figure),
    )


def _figure(run: OpenRun, kind: Kind, of: Sides, *, large: bool) -> Spec:
    view = run.view
    n_queries, n_keys = len(of.queries), len(of.keys)
    maps = run.trace.maps(kind)[:, :, :n_queries, :n_keys]
    name, (n_layers, n_heads) = KIND_NAMES[kind], maps.shape[:2]
    sized = say("{attention}: {layers} layers × {heads} heads", attention=name, layers=n_layers, heads=n_heads)
    return charts.grid_spec(
        maps,
        queries=of.queries,
        keys=of.keys,
        title=sized if large else name,
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        allowed=run.trace.mask(kind)[:n_queries, :n_keys],
        mask_reason=mask_reason(run.checkpoint.config, kind),
        chosen=(view.layer, view.head) if kind == view.kind else (None, None),
        colour=of.key_side,
        own_scale=view.own_scale,
        log=view.log_scale,
        show_scale=large,
        **(LARGE if large else SMALL),
    )


def _opening(run: OpenRun, kind: Kind, figure: Spec) -> Callable[[], None]:
    slot = run.slot
    return on_click(
        run.key(GRIDS[kind]), cell_of, lambda cell: controls.open_head(slot, kind, *tile_at(figure, *cell))
    )
