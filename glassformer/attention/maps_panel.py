"""The parts "All heads" and "One map" of the Attention page, and what is said of the cell that is looked at."""

from functools import partial
from typing import Any, Final

from glassformer.attention.attention_panels import below, controls
from glassformer.attention.drawn_maps import ALL_SPECIAL, DrawnMap
from glassformer.attention.map_pictures import GRIDS, one_map, open_map
from glassformer.maps.grid import columns, is_long
from glassformer.runs.open_run import AnyRun, OpenMaps
from glassformer.runs.show import show
from glassformer.runs.sides import mask_reason, sides
from glassformer.shared import drawing
from glassformer.shared.door import st
from glassformer.state import session
from transformer.i18n import say
from transformer.model.anatomy import Kind

CELL_ROW: Final = "head_cell"
EXPLAIN: Final = "head_explain"


def all_heads(run: AnyRun, row: Any) -> None:
    """Draw the part "All heads", with its controls in `row`."""
    controls(run, row, "overview")
    below(run, partial(_all_heads, run))


def _all_heads(run: AnyRun) -> None:
    """The chosen attention large, the others beside it."""
    kind = run.view.kind
    large, others = partial(_grid, run, kind), [partial(_grid, run, one) for one in run.trace.kinds if one != kind]
    if not others:
        large()
    elif is_long(run, kind):
        large()
        drawing.beside(*others, gap="medium")
    else:
        drawing.beside(large, lambda: [draw() for draw in others], widths=(5, 3), gap="medium")


def _grid(run: AnyRun, kind: Kind) -> None:
    show(GRIDS[kind], run, table=partial(columns, run.again(), kind, sides(run.looking, kind)))


def one(run: AnyRun, row: Any) -> None:
    """Draw the part "One map", with its controls in `row`."""
    controls(run, row, "head")
    below(run, partial(map_and_cell, run))


def map_and_cell(run: AnyRun) -> None:
    """Draw the map, and under it its cell that is looked at."""
    found = open_map(run)
    if found is None:
        st.info(ALL_SPECIAL)
        return
    show(one_map, found)
    _cell(run, found.drawn, found.cell)


def _cell(run: AnyRun, drawn: DrawnMap, cell: tuple[int, int] | None) -> None:
    """Say the number of the cell that is looked at, and lead to how it came to be."""
    if cell is None:
        return
    query = say("{piece} (row {place})", piece=drawing.plain(drawn.queries[cell[0]]), place=cell[0] + 1)
    key = say("{piece} (column {place})", piece=drawing.plain(drawn.keys[cell[1]]), place=cell[1] + 1)
    if drawn.allowed[cell]:
        weight = drawn.weights[cell]
        said = say("Selected: {query}, {key}; weight **{weight:.4f}**", query=query, key=key, weight=weight)
    else:
        said = say(
            "Selected: {query}, {key}; {reason}",
            query=query,
            key=key,
            reason=mask_reason(run.checkpoint, run.view.kind),
        )
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(CELL_ROW)):
        st.markdown(said, width="content")
        if isinstance(run, OpenMaps):
            return
        st.button(
            say("See how this weight is computed"),
            key=run.key(EXPLAIN),
            on_click=partial(session.replace, run.slot, panel="walk"),
            icon=":material/arrow_forward:",
        )
