"""The drawing of one attention map: colours, marks, what its cells mean, and how to read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.attention.drawn_maps import (
    DrawnMap,
    aggregate_of,
    first_from,
    is_spread_thin,
    piece_map,
    rollout_note,
    words_note,
)
from glassformer.charts.heatmap import HOW_TO_READ as HOW_TO_READ_GIVEN
from glassformer.charts.heatmap import (
    HOW_TO_READ_CLOSED,
    HOW_TO_READ_MARK,
    HOW_TO_READ_PROMPT,
    ROWS_AND_COLUMNS,
    follow_steps,
    heatmap_spec,
    part_map,
)
from glassformer.charts.theme import Colour
from glassformer.runs.map_axes import mask_reason, prompt_row, shared_by
from glassformer.runs.picture import Plot
from glassformer.runs.viewed_run import Scene, Viewed
from glassformer.state.view import Click, cell_of
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind
from transformer.runs.trace import LabelledMaps

LEAST_HEIGHT: Final = 320  # the names of the axes need room even where there are three rows
HOW_TO_READ: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A row's weights are softmax(q·k / √d_head) over the keys and sum to 1.")]
)
HOW_TO_READ_MEAN: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A row's weights are the mean of softmax(q·k / √d_head) over the heads and sum to 1.")]
)
HOW_TO_READ_MAX: Final = joined(
    " ", [ROWS_AND_COLUMNS, say("A cell shows the largest weight, softmax(q·k / √d_head), in any head.")]
)
HOW_TO_READ_CELL: Final = say("Click a cell to take a closer look.")


@dataclass(frozen=True)
class OneMap(Scene):
    """The map of a head, or of all heads together."""

    drawn: DrawnMap

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the selected cell; None if there is none, or if it is hidden."""
        return self.drawn.cell(self.run.view)


def map_plot(one: OneMap) -> Plot:
    """The map; a click on a cell looks at its pieces, here and in the other parts."""
    run, drawn, view = one.run, one.drawn, one.run.view
    shared = "" if view.head is None or run.checkpoint is None else shared_by(view.head, run.checkpoint.config)
    colour = colour_of(run, view.kind, drawn.sides.key_side)
    most = float(np.abs(drawn.weights[drawn.allowed]).max(initial=0.0)) or 1.0
    limits = (-most, most) if colour == "signed" else (0.0, most if view.own_scale else 1.0)
    figure = heatmap_spec(
        drawn.weights,
        queries=drawn.queries,
        keys=drawn.keys,
        title=drawn.title,
        query_axis=drawn.sides.query_axis,
        key_axis=drawn.sides.key_axis,
        allowed=drawn.allowed,
        mask_reason=mask_reason(run.checkpoint, view.kind),
        marked_cell=one.cell,
        colour=colour,
        limits=limits,
        log=colour != "signed" and (is_spread_thin(run.visible) if view.log_scale is None else view.log_scale),
        rows_sum_to_one=drawn.sums_to_one,
        note=joined("; ", [*drawn.notes, *([shared] if shared else [])]),
    )
    figure["layout"]["height"] = max(figure["layout"]["height"], LEAST_HEIGHT)
    if (prompt := prompt_row(run, view.kind)) is not None:
        part_map(figure, row=first_from(drawn.rows, prompt), column=first_from(drawn.columns, prompt + 1))
    follow_steps(figure, drawn.row_of_step(), n_rows=len(drawn.queries), n_columns=len(drawn.keys))
    return Plot(
        spec=figure,
        alt=say(
            "{map}. Rows: {rows}; columns: {columns}.",
            map=drawn.title,
            rows=drawn.sides.query_axis,
            columns=drawn.sides.key_axis,
        ),
        how_to_read=_how_to_read(run, drawn),
        fit=True,
        clicked=partial(_pieces_at, drawn, piece_map(run.visible, view.kind) if view.words else None),
    )


def _pieces_at(drawn: DrawnMap, weights: np.ndarray | None, click: Click) -> Mapping[str, Any] | None:
    """What a click looks at; of a cell between words the pieces with the largest of the weights [query, key]."""
    row, column = cell_of(click) or (len(drawn.rows), 0)
    if row >= len(drawn.rows) or column >= len(drawn.columns):
        return None
    first = drawn.rows[row][0], drawn.columns[column][0]
    query, key = first if weights is None else drawn.pieces_at(row, column, weights)
    return {"query": query, "key": key}


def _how_to_read(run: Viewed, drawn: DrawnMap) -> str:
    how = {"mean": HOW_TO_READ_MEAN, "max": HOW_TO_READ_MAX}.get(aggregate_of(run.view) or "", HOW_TO_READ)
    trace = run.visible.trace
    if isinstance(trace, LabelledMaps) and how != HOW_TO_READ_MAX:  # by which formula is not known
        how = HOW_TO_READ_GIVEN if trace.of(run.view.kind).sums_to_one else ROWS_AND_COLUMNS
    parts = [rollout_note(trace, run.view, run.view.kind) or how]
    parts += [words_note(run.visible, run.view.kind)] * run.view.words + [HOW_TO_READ_CLOSED] * (
        not drawn.allowed.all()
    )
    parts += [HOW_TO_READ_MARK] * (drawn.sides.current is not None)
    parts += [HOW_TO_READ_PROMPT] * (prompt_row(run, run.view.kind) is not None)
    return joined(" ", [*parts, HOW_TO_READ_CELL])


def colour_of(run: Viewed, kind: Kind, usual: Colour) -> Colour:
    """That of attributions, or the usual one."""
    maps = run.visible.trace
    return "signed" if isinstance(maps, LabelledMaps) and maps.of(kind).signed else usual
