"""All heads of all layers: the chosen attention large, the two others beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

import charts
from charts.following import HOW_TO_READ as HOW_TO_READ_MARK
from charts.grid import HOW_TO_READ, HOW_TO_READ_CLOSED, follow_in_tiles, tile_at
from charts.theme import Spec
from transformer.runs.trace import Kind
from ui.attention import controls
from ui.attention.maps import MASK_REASONS, map_name
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES, sides
from ui.shared import drawing
from ui.shared.clicks import cell_of, on_click

GRIDS: Final[dict[Kind, str]] = {
    "encoder": "overview_encoder",
    "decoder": "overview_decoder",
    "cross": "overview_cross",
}
OPEN: Final = "overview_open"
ROW: Final = "overview_controls"
LARGE: Final = {"width": 560, "most_cells": 48_000}
SMALL: Final = {"width": 330, "most_cells": 16_000}
CLICK: Final = "Click a tile to open its head."


def draw(run: OpenRun) -> None:
    """Draw the part "All heads" of the Attention page."""
    view = run.view
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(ROW)):
        controls.scales(run.slot)
        st.button(
            f"Open {map_name(run.trace, view, view.kind)}",
            key=run.key(OPEN),
            on_click=controls.open_head,
            args=(run.slot, view.kind, view.layer, view.head),
            help="Opens what is chosen above. The keyboard does it too: choose with Tab and the arrow keys.",
        )
    left, right = st.columns([5, 3], gap="medium")
    with left:
        _grid(run, view.kind, large=True)
    with right:
        for kind in GRIDS:
            if kind != view.kind:
                _grid(run, kind, large=False)


def _grid(run: OpenRun, kind: Kind, *, large: bool) -> None:
    figure = _figure(run, kind, large=large)
    _follow(run, kind, figure)
    allowed = run.trace.mask(kind)
    n_layers, n_heads = run.trace.maps(kind).shape[:2]
    read = [HOW_TO_READ, *([] if allowed.all() else [HOW_TO_READ_CLOSED])]
    read += [] if kind == "encoder" else [HOW_TO_READ_MARK]
    drawing.chart(
        figure,
        key=run.key(GRIDS[kind]),
        alt=f"{KIND_NAMES[kind]} as a grid of small maps, one for each of {n_layers} layers (rows) and {n_heads} "
        "heads (columns). The controls above open the map of a single head.",
        how_to_read=" ".join([*read, CLICK]) if large else f"The same for {KIND_NAMES[kind].lower()}. {CLICK}",
        on_click=_opening(run, kind, figure),
    )


def _figure(run: OpenRun, kind: Kind, *, large: bool) -> Spec:
    view, of = run.view, sides(run.looking, kind)
    n_queries, n_keys = len(of.queries), len(of.keys)
    maps = run.trace.maps(kind)[:, :, :n_queries, :n_keys]
    return charts.grid_spec(
        maps,
        queries=of.queries,
        keys=of.keys,
        title=f"{KIND_NAMES[kind]}: {maps.shape[0]} layers × {maps.shape[1]} heads" if large else KIND_NAMES[kind],
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        allowed=run.trace.mask(kind)[:n_queries, :n_keys],
        mask_reason=MASK_REASONS[kind],
        chosen=(view.layer, view.head) if kind == view.kind else (None, None),
        colour=of.key_side,
        own_scale=view.own_scale,
        log=view.log_scale,
        show_scale=large,
        **(LARGE if large else SMALL),
    )


def _follow(run: OpenRun, kind: Kind, figure: Spec) -> None:
    """Mark the current step in every tile."""
    if kind != "encoder" and figure["data"]:
        follow_in_tiles(figure, range(run.looking.n_rows))


def _opening(run: OpenRun, kind: Kind, figure: Spec) -> Callable[[], None]:
    slot = run.slot
    return on_click(
        run.key(GRIDS[kind]), cell_of, lambda cell: controls.open_head(slot, kind, *tile_at(figure, *cell))
    )
