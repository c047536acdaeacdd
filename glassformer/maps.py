"""Attention maps that several pages show: that of the selected head, and small ones of all heads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from glassformer.charts.following import HOW_TO_READ as HOW_TO_READ_MARK
from glassformer.charts.following import follow_steps
from glassformer.charts.grid import HOW_TO_READ, follow_in_tiles, grid_spec, tile_at
from glassformer.charts.grid import HOW_TO_READ_CLOSED as HOW_TO_READ_GREY
from glassformer.charts.groups import HOW_TO_READ as HOW_TO_READ_GROUPS
from glassformer.charts.heatmap import HOW_TO_READ_CLOSED, heatmap_spec
from glassformer.charts.packing import Blocks, block_size, open_blocks, pooled
from glassformer.charts.prompt import HOW_TO_READ as HOW_TO_READ_PROMPT
from glassformer.charts.prompt import part_map
from glassformer.charts.tables import CLOSED, heads_columns, too_many
from glassformer.charts.theme import Spec
from glassformer.runs.map_axes import KIND_NAMES, MapAxes, mask_reason, own_masks, prompt_row, sides, size_of
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import Viewed, ViewedRun
from glassformer.runs.visible_trace import VisibleTrace, chosen_map
from glassformer.state.click import cell_of, fields
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind
from transformer.runs.labelled_maps import LabelledMaps
from transformer.runs.trace import Trace


@dataclass(frozen=True, eq=False)
class SeenMap:
    """A map, with what its rows and columns are."""

    run: ViewedRun
    visible: VisibleTrace  # what is drawn of it; a run may read the output of another
    kind: Kind
    weights: np.ndarray  # [query, key]
    allowed: np.ndarray  # bool [query, key], True = may attend
    sides: MapAxes

    @property
    def closed(self) -> list[str]:
        """How to read closed cells, if there are any."""
        return [] if self.allowed.all() else [HOW_TO_READ_CLOSED]

    def spec(
        self,
        title: str,
        *,
        mask_reason: str = CLOSED,
        marked_row: int | None = None,
        limits: tuple[float, float] = (0.0, 1.0),
        rows_sum_to_one: bool = True,
    ) -> Spec:
        """The figure."""
        return heatmap_spec(
            self.weights,
            queries=self.sides.queries,
            keys=self.sides.keys,
            title=title,
            query_axis=self.sides.query_axis,
            key_axis=self.sides.key_axis,
            allowed=self.allowed,
            mask_reason=mask_reason,
            marked_row=marked_row,
            colour=self.sides.key_side,
            limits=limits,
            rows_sum_to_one=rows_sum_to_one,
            note=self.visible.trace.rows_note(self.kind),
        )

    def mark(self, figure: Spec) -> None:
        """Mark the row of each step, and where a prompt ends."""
        n_rows, n_columns = self.weights.shape
        if self.kind != "encoder":
            rows = [self.visible.trace.row_of(step) for step in range(self.visible.n_steps)]
            follow_steps(figure, rows, n_rows=n_rows, n_columns=n_columns)
        if (prompt := prompt_row(self.run, self.kind)) is not None:
            part_map(figure, row=prompt, column=prompt + 1 if prompt + 1 < n_columns else None)

    def alt(self, title: str) -> str:
        """The map in a sentence."""
        of = self.sides
        return say("{map}. Rows: {rows}; columns: {columns}.", map=title, rows=of.query_axis, columns=of.key_axis)


def seen_map(run: ViewedRun, kind: Kind, visible: VisibleTrace | None = None) -> SeenMap:
    """The map; of the run itself, if nothing else is looked at. Errors as of `VisibleTrace.each`."""
    visible = visible or run.visible
    axes = sides(visible, kind)
    seen = slice(len(axes.queries)), slice(len(axes.keys))
    allowed = visible.trace.mask(kind, visible.view.layer)[seen]
    return SeenMap(run, visible, kind, chosen_map(visible, kind)[seen], allowed, axes)


LARGE: Final = {"width": 560, "most_cells": 48_000}
FEW_PIECES: Final = 32
_BYTES_A_CELL: Final = 16  # of a figure, with its labels
WIDE: Final = {"width": 920, "most_cells": 64_000}
SMALL: Final = {"width": 330, "most_cells": 16_000}
HOW_TO_READ_GIVEN: Final = say(
    "Each tile is one head's map: queries run from top to bottom, keys from left to right. The stronger the "
    "colour, the larger the weight."
)
CLICK: Final = say("Click a tile to open its head.")
SAME: Final[dict[Kind, str]] = {
    "encoder": say("The same picture for encoder self-attention."),
    "decoder": say("The same picture for decoder self-attention."),
    "cross": say("The same picture for cross-attention."),
}


def is_long(run: Viewed, kind: Kind) -> bool:
    """Whether a tile needs all the width there is to show its pieces."""
    of = sides(run.visible, kind)
    return max(len(of.queries), len(of.keys)) > FEW_PIECES


def grid(run: Viewed, kind: Kind, *, large: bool, fit: bool, also: Mapping[str, Any]) -> Plot:
    """All heads of an attention.

    `large`: whether the page is about these maps. `fit`: whether the chart takes the height that is left on the first
    screen. `also`: what else a click on a tile selects, with its head.
    """
    of = sides(run.visible, kind)
    figure = _shared(run, kind, of, large=large) if isinstance(run, ViewedRun) else _figure(run, kind, of, large=large)
    n_layers, n_heads = run.visible.trace.maps(kind).shape[:2]
    read = [HOW_TO_READ if isinstance(run, ViewedRun) else HOW_TO_READ_GIVEN] if large else [SAME[kind]]
    if large:
        read += [HOW_TO_READ_GREY] * (not own_masks(run, kind).all()) + [HOW_TO_READ_MARK] * (of.current is not None)
        read += [HOW_TO_READ_GROUPS] * (size_of(run) > 1) + [HOW_TO_READ_PROMPT] * (prompt_row(run, kind) is not None)

    def opened(cell: tuple[int, int]) -> Mapping[str, Any]:
        layer, head = tile_at(figure, *cell)
        return {"kind": kind, "layer": layer, "head": head, **also}

    alt = say(
        "{attention} as a grid of small maps, one for each of {layers} layers (rows) and {heads} heads "
        "(columns). The controls above open the map of a single head.",
        attention=KIND_NAMES[kind],
        layers=n_layers,
        heads=n_heads,
    )
    how_to_read = joined(" ", [*read, CLICK])
    return Plot(spec=figure, alt=alt, how_to_read=how_to_read, fit=fit, clicked=fields(cell_of, opened))


def columns(again: Callable[[], Trace | LabelledMaps], kind: Kind, of: MapAxes) -> dict[str, Any]:
    """The weights of all heads as a table. A session keeps this, so it holds no run and looks it up again."""
    trace = again()
    n_queries, n_keys = len(of.queries), len(of.keys)
    maps = trace.maps(kind)[:, :, :n_queries, :n_keys]
    if maps.shape[2:] != (n_queries, n_keys):  # a run that keeps no maps has too many
        return too_many(maps.shape[0] * maps.shape[1] * n_queries * n_keys)
    masks = trace.mask(kind) if isinstance(trace, LabelledMaps) else trace.masks[kind]
    return heads_columns(
        maps,
        layers=range(1, maps.shape[0] + 1),
        heads=range(1, maps.shape[1] + 1),
        queries=of.queries,
        keys=of.keys,
        allowed=masks[..., None, :n_queries, :n_keys] if masks.ndim == 3 else masks[:n_queries, :n_keys],
    )


def _shared(run: ViewedRun, kind: Kind, of: MapAxes, *, large: bool) -> Spec:
    """The figure that all who look at the same share, at every step: a mark follows the step in the browser."""
    view, revealed = (run.view, run.visible.revealed) if run.view.guess else (replace(run.view, step=0), True)

    def make() -> Spec:
        figure = _figure(run, kind, of, large=large)
        if of.current is not None and figure["data"]:
            follow_in_tiles(figure, [run.trace.row_of(step) for step in range(run.visible.n_steps)])
        return figure

    if not run.trace.keeps_maps:  # its maps are made in the model's thread, which would wait for itself
        return make()
    key = ("grid", run.trace.query, kind, large, view, revealed)
    return run.work.compute(key, make, nbytes=lambda _: _BYTES_A_CELL * LARGE["most_cells"])


def _figure(run: Viewed, kind: Kind, of: MapAxes, *, large: bool) -> Spec:
    view = run.view
    size: dict[str, int] = SMALL if not large else WIDE if is_long(run, kind) else LARGE
    maps, allowed = _maps(run, kind, of, most_cells=size["most_cells"])
    name, (n_layers, n_heads) = KIND_NAMES[kind], run.visible.trace.maps(kind).shape[:2]
    sized = say("{attention}: {layers} layers × {heads} heads", attention=name, layers=n_layers, heads=n_heads)
    return grid_spec(
        maps,
        queries=of.queries,
        keys=of.keys,
        title=sized if large else name,
        query_axis=of.query_axis,
        key_axis=of.key_axis,
        allowed=allowed,
        mask_reason=mask_reason(run.checkpoint, kind),
        chosen=(view.layer, view.head) if kind == view.kind else (None, None),
        colour=of.key_side,
        own_scale=view.own_scale,
        log=bool(view.log_scale),
        show_scale=large,
        group=size_of(run),
        prompt=prompt_row(run, kind),
        note=run.trace.rows_note(kind) if large and isinstance(run, ViewedRun) else "",
        **size,
    )


def _maps(run: Viewed, kind: Kind, of: MapAxes, *, most_cells: int) -> tuple[np.ndarray | Blocks, np.ndarray]:
    """The maps of all heads and their mask; blocks of them where a run keeps no maps, made layer by layer."""
    n_queries, n_keys = len(of.queries), len(of.keys)
    allowed = own_masks(run, kind)[..., :n_queries, :n_keys]
    maps = run.visible.trace.maps(kind)[:, :, :n_queries, :n_keys]
    if maps.shape[2:] == (n_queries, n_keys):
        return maps, allowed
    size = block_size((*maps.shape[:2], n_queries, n_keys), most_cells)

    def blocks(heads: np.ndarray, layer: int) -> np.ndarray:
        mask = allowed if allowed.ndim == 2 else allowed[layer]
        return pooled(heads[None, :, :n_queries, :n_keys], mask, size).weights[0]

    weights = np.stack(run.visible.each(kind, blocks, key=("blocks", n_queries, n_keys, size)))
    return Blocks(weights, open_blocks(allowed, size), size), allowed
