"""One map in full: a head, or all heads together, piece by piece or word by word."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

import charts
from charts.following import HOW_TO_READ as HOW_TO_READ_MARK
from charts.following import follow_steps
from charts.heatmap import HOW_TO_READ as HOW_TO_READ_GIVEN
from charts.heatmap import HOW_TO_READ_CLOSED
from charts.prompt import HOW_TO_READ as HOW_TO_READ_PROMPT
from charts.prompt import part_map
from ui.attention.maps import (
    ALL_SPECIAL,
    DrawnMap,
    aggregate_of,
    drawn_map,
    first_from,
    is_spread_thin,
    piece_map,
    rollout_note,
    words_note,
)
from ui.maps.masked import mask_reason
from ui.runs.groups import prompt_row, shared_by
from ui.runs.open_maps import AnyRun, OpenMaps
from ui.shared import drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.click import cell_of
from words import joined, say

MAP: Final = "head_map"
CELL_ROW: Final = "head_cell"
EXPLAIN: Final = "head_explain"
LEAST_HEIGHT: Final = 320  # the names of the axes need room even where there are three rows
HOW_TO_READ: Final = say(
    "Each row is a query and shares out a weight of 1 over the keys, softmax(q·k / √d_head): the stronger a cell, "
    "the more of that key's value the query takes."
)
HOW_TO_READ_MEAN: Final = say(
    "Each row is a query and shares out a weight of 1 over the keys, the mean over heads of softmax(q·k / "
    "√d_head): the stronger a cell, the more of that key's values the query takes."
)
HOW_TO_READ_MAX: Final = say(
    "Each cell is the largest weight, softmax(q·k / √d_head), that any of the heads gives this key in this row."
)
HOW_TO_READ_OTHER_SUMS: Final = say(
    "Each row is one query: the stronger a cell, the larger the weight that it gives to that key."
)
HOW_TO_READ_CELL: Final = say("Click a cell to look at it closer.")


def draw(run: AnyRun) -> None:
    """Draw the part "One map" of the Attention page."""
    drawn = drawn_map(run.looking, run.checkpoint, run.view.kind)
    if not drawn.weights.size:
        st.info(ALL_SPECIAL)
        return
    config = None if run.checkpoint is None else run.checkpoint.config
    shared = shared_by(run.view.head, config) if run.view.head is not None else ""
    figure = charts.heatmap_spec(
        drawn.weights,
        queries=drawn.queries,
        keys=drawn.keys,
        title=drawn.title,
        query_axis=drawn.sides.query_axis,
        key_axis=drawn.sides.key_axis,
        allowed=drawn.allowed,
        mask_reason=mask_reason(run.checkpoint, run.view.kind),
        marked_cell=drawn.cell(run.view),
        colour=drawn.sides.key_side,
        limits=(0.0, _largest(drawn) if run.view.own_scale else 1.0),
        log=is_spread_thin(run.looking) if run.view.log_scale is None else run.view.log_scale,
        rows_sum_to_one=drawn.sums_to_one,
        note=joined("; ", [*drawn.notes, *([shared] if shared else [])]),
    )
    figure["layout"]["height"] = max(figure["layout"]["height"], LEAST_HEIGHT)
    if (prompt := prompt_row(run, run.view.kind)) is not None:
        part_map(figure, row=first_from(drawn.rows, prompt), column=first_from(drawn.columns, prompt + 1))
    follow_steps(figure, drawn.row_of_step(), n_rows=len(drawn.queries), n_columns=len(drawn.keys))
    drawing.chart(
        figure,
        key=run.key(MAP),
        alt=say(
            "{map}. Rows: {rows}; columns: {columns}.",
            map=drawn.title,
            rows=drawn.sides.query_axis,
            columns=drawn.sides.key_axis,
        ),
        how_to_read=_how_to_read(run, drawn),
        fit=True,
        on_click=_choosing(run, drawn),
    )
    _cell(run, drawn)


def _largest(drawn: DrawnMap) -> float:
    """The largest weight of the map; 1 where there is none."""
    return float(np.where(drawn.allowed, drawn.weights, 0.0).max()) or 1.0


def _how_to_read(run: AnyRun, drawn: DrawnMap) -> str:
    how = {"mean": HOW_TO_READ_MEAN, "max": HOW_TO_READ_MAX}.get(aggregate_of(run.view) or "", HOW_TO_READ)
    if isinstance(run, OpenMaps) and how != HOW_TO_READ_MAX:  # by which formula is not known
        how = HOW_TO_READ_GIVEN if run.trace.of(run.view.kind).sums_to_one else HOW_TO_READ_OTHER_SUMS
    parts = [rollout_note(run.trace, run.view, run.view.kind) or how]
    parts += [words_note(run.looking, run.view.kind)] * run.view.words + [HOW_TO_READ_CLOSED] * (
        not drawn.allowed.all()
    )
    parts += [HOW_TO_READ_MARK] * (drawn.sides.current is not None)
    parts += [HOW_TO_READ_PROMPT] * (prompt_row(run, run.view.kind) is not None)
    return joined(" ", [*parts, HOW_TO_READ_CELL])


def _choosing(run: AnyRun, drawn: DrawnMap) -> Callable[[], None]:
    """Callback of a click: the pieces of the cell are looked at from now on, here and in the other parts.

    A session keeps its callbacks, so this one holds one map and not the run with all its maps.
    """
    weights = piece_map(run.looking, run.view.kind) if run.view.words else None
    slot, rows, columns, key = run.slot, drawn.rows, drawn.columns, run.key(MAP)

    def choose(cell: tuple[int, int]) -> None:
        row, column = cell
        if row < len(rows) and column < len(columns):
            first = rows[row][0], columns[column][0]
            query, key = first if weights is None else drawn.pieces_at(row, column, weights)
            session.replace(slot, query=query, key=key)

    return on_click(key, cell_of, choose)


def _cell(run: AnyRun, drawn: DrawnMap) -> None:
    """Say the number of the cell that is looked at, and lead to how it came to be."""
    cell = drawn.cell(run.view)
    if cell is None:
        return
    query = say("{piece} (row {place})", piece=drawing.plain(drawn.queries[cell[0]]), place=cell[0] + 1)
    key = say("{piece} (column {place})", piece=drawing.plain(drawn.keys[cell[1]]), place=cell[1] + 1)
    if drawn.allowed[cell]:
        weight = drawn.weights[cell]
        said = say("Looked at: {query}, {key}: weight **{weight:.4f}**", query=query, key=key, weight=weight)
    else:
        said = say(
            "Looked at: {query}, {key}: {reason}",
            query=query,
            key=key,
            reason=mask_reason(run.checkpoint, run.view.kind),
        )
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(CELL_ROW)):
        st.markdown(said, width="content")
        if isinstance(run, OpenMaps):
            return
        st.button(
            say("How this weight came to be"),
            key=run.key(EXPLAIN),
            on_click=partial(session.replace, run.slot, panel="walk"),
            icon=":material/arrow_forward:",
        )
