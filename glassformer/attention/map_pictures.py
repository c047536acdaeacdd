"""The pictures of whole maps on the Attention page: all heads of an attention, and one map in full.

The one map is of a head or of all heads together, piece by piece or word by word.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from glassformer.attention.drawn_maps import (
    ATTENTION,
    KINDS,
    DrawnMap,
    aggregate_of,
    drawn_map,
    first_from,
    is_spread_thin,
    piece_map,
    rollout_note,
    words_note,
)
from glassformer.charts.following import HOW_TO_READ as HOW_TO_READ_MARK
from glassformer.charts.following import follow_steps
from glassformer.charts.heatmap import HOW_TO_READ as HOW_TO_READ_GIVEN
from glassformer.charts.heatmap import HOW_TO_READ_CLOSED, heatmap_spec
from glassformer.charts.prompt import HOW_TO_READ as HOW_TO_READ_PROMPT
from glassformer.charts.prompt import part_map
from glassformer.maps.grid import grid
from glassformer.runs.picture import Part, Picture, Plot
from glassformer.runs.seen import Drawn, OfDrawn
from glassformer.runs.sides import mask_reason, prompt_row, shared_by
from glassformer.state.click import Click, cell_of
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind
from transformer.runs.labelled_maps import LabelledMaps

LEAST_HEIGHT: Final = 320  # the names of the axes need room even where there are three rows
HOW_TO_READ: Final = say(
    "Each row is a query; its weights over the keys, softmax(q·k / √d_head), sum to 1. The stronger a cell's "
    "colour, the more of that key's value the query receives."
)
HOW_TO_READ_MEAN: Final = say(
    "Each row is a query. Its weights over the keys are the mean of softmax(q·k / √d_head) over the heads and sum "
    "to 1. The stronger a cell's colour, the more of that key's values the query receives."
)
HOW_TO_READ_MAX: Final = say(
    "Each cell shows the largest weight, softmax(q·k / √d_head), that the row's query gives to the column's key in "
    "any head."
)
HOW_TO_READ_OTHER_SUMS: Final = say(
    "Each row is a query. The stronger a cell's colour, the larger the weight that the query gives to that key."
)
HOW_TO_READ_CELL: Final = say("Click a cell to take a closer look.")

# ------------------------------------------------------------------------------------------------ all heads

OVERVIEW: Part[Drawn] = ATTENTION.part("overview", lambda run: run)


def _all_heads(run: Drawn, *, kind: Kind) -> Plot | None:
    if kind not in run.looking.trace.kinds:
        return None
    large = kind == run.view.kind
    return grid(run, kind, large=large, fit=large, also={"heads": (), "panel": "head"})


GRIDS: Final[dict[Kind, Picture[Drawn]]] = {
    kind: OVERVIEW.picture(f"overview_{kind}", title, follows="still")(partial(_all_heads, kind=kind))
    for kind, title in KINDS.items()
}


# ------------------------------------------------------------------------------------------------ one map


@dataclass(frozen=True)
class OneMap(OfDrawn):
    """The map of a head, or of all heads together."""

    drawn: DrawnMap

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the cell that is looked at; None if there is none, or if it is hidden."""
        return self.drawn.cell(self.run.view)


def open_map(run: Drawn) -> OneMap | None:
    """The map that is looked at; None where all its pieces are special and hidden."""
    drawn = drawn_map(run.looking, run.checkpoint, run.view.kind)
    return OneMap(run, drawn) if drawn.weights.size else None


HEAD: Part[OneMap] = ATTENTION.part("head", open_map)


@HEAD.picture("head_map", say("One map"), follows="still")
def one_map(one: OneMap) -> Plot:
    """The map; a click on a cell looks at its pieces, here and in the other parts."""
    run, drawn, view = one.run, one.drawn, one.run.view
    shared = "" if view.head is None or run.checkpoint is None else shared_by(view.head, run.checkpoint.config)
    largest = float(np.where(drawn.allowed, drawn.weights, 0.0).max()) or 1.0
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
        colour=drawn.sides.key_side,
        limits=(0.0, largest if view.own_scale else 1.0),
        log=is_spread_thin(run.looking) if view.log_scale is None else view.log_scale,
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
        clicked=partial(_pieces_at, drawn, piece_map(run.looking, view.kind) if view.words else None),
    )


def _pieces_at(drawn: DrawnMap, weights: np.ndarray | None, click: Click) -> Mapping[str, Any] | None:
    """What a click looks at; of a cell between words the pieces with the largest of the weights [query, key]."""
    row, column = cell_of(click) or (len(drawn.rows), 0)
    if row >= len(drawn.rows) or column >= len(drawn.columns):
        return None
    first = drawn.rows[row][0], drawn.columns[column][0]
    query, key = first if weights is None else drawn.pieces_at(row, column, weights)
    return {"query": query, "key": key}


def _how_to_read(run: Drawn, drawn: DrawnMap) -> str:
    how = {"mean": HOW_TO_READ_MEAN, "max": HOW_TO_READ_MAX}.get(aggregate_of(run.view) or "", HOW_TO_READ)
    trace = run.looking.trace
    if isinstance(trace, LabelledMaps) and how != HOW_TO_READ_MAX:  # by which formula is not known
        how = HOW_TO_READ_GIVEN if trace.of(run.view.kind).sums_to_one else HOW_TO_READ_OTHER_SUMS
    parts = [rollout_note(trace, run.view, run.view.kind) or how]
    parts += [words_note(run.looking, run.view.kind)] * run.view.words + [HOW_TO_READ_CLOSED] * (
        not drawn.allowed.all()
    )
    parts += [HOW_TO_READ_MARK] * (drawn.sides.current is not None)
    parts += [HOW_TO_READ_PROMPT] * (prompt_row(run, run.view.kind) is not None)
    return joined(" ", [*parts, HOW_TO_READ_CELL])
