"""The parts All heads, One map, Flow and Without parameters of the Attention page, and the selected cell's text."""

from functools import partial
from typing import Any, Final

from glassformer.attention import map_pictures as pictures
from glassformer.attention.attention_panels import below, map_controls
from glassformer.attention.drawn_maps import ALL_SPECIAL, DrawnMap
from glassformer.charts.heatmap import heads_columns
from glassformer.components.flow_component import flow_view, last_choice
from glassformer.runs.map_axes import mask_reason, sides
from glassformer.runs.open_run import AnyRun, OpenMaps, OpenRun
from glassformer.runs.show import show
from glassformer.shared import cover_box, drawing
from glassformer.shared.i18n import here, st
from glassformer.state import session
from transformer.i18n import say
from transformer.model.anatomy import Kind

EXPLAIN: Final = "head_explain"


def all_heads(run: AnyRun, row: Any) -> None:
    """Draw the part "All heads", with its controls in `row`."""
    map_controls(run, row, "overview")
    below(run, partial(_grids, run))


def _grids(run: AnyRun) -> None:
    kind = run.view.kind
    large, others = partial(_grid, run, kind), [partial(_grid, run, one) for one in run.trace.kinds if one != kind]
    if not others:
        large()
    elif pictures.is_long(run, kind):
        large()
        drawing.beside(*others, gap="medium")
    else:
        drawing.beside(large, lambda: [draw() for draw in others], widths=(5, 3), gap="medium")


def _grid(run: AnyRun, kind: Kind) -> None:
    show(pictures.GRIDS[kind], run, table=partial(pictures.columns, run.again(), kind, sides(run.visible, kind)))


def one(run: AnyRun, row: Any) -> None:
    """Draw the part "One map", with its controls in `row`."""
    map_controls(run, row, "head")
    below(run, partial(map_and_cell, run))


def map_and_cell(run: AnyRun) -> None:
    """Draw the map, and its selected cell below."""
    found = pictures.open_map(run)
    if found is None:
        st.info(ALL_SPECIAL)
        return
    show(pictures.one_map, found)
    _cell(run, found.drawn, found.cell)


def _cell(run: AnyRun, drawn: DrawnMap, cell: tuple[int, int] | None) -> None:
    if cell is None:
        return
    query = say("{piece} (row {place})", piece=drawing.plain(drawn.queries[cell[0]]), place=cell[0] + 1)
    key = say("{piece} (column {place})", piece=drawing.plain(drawn.keys[cell[1]]), place=cell[1] + 1)
    said = say("Selected: {query}, {key}; weight **{weight:.4f}**", query=query, key=key, weight=drawn.weights[cell])
    if not drawn.allowed[cell]:
        reason = mask_reason(run.checkpoint, run.view.kind)
        said = say("Selected: {query}, {key}; {reason}", query=query, key=key, reason=reason)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key("head_cell")):
        st.markdown(said, width="content")
        if not isinstance(run, OpenMaps):
            label, there = say("See how this weight is computed"), partial(session.replace, run.slot, panel="walk")
            st.button(label, key=run.key(EXPLAIN), on_click=there, icon=":material/arrow_forward:")


def without_parameters(run: OpenRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""

    def drawn() -> None:
        if (found := pictures.open_plain(run)) is None:
            st.info(ALL_SPECIAL)
            return
        drawing.beside(*(partial(show, one, found) for one in pictures.THREE), widths=(6, 6, 7), gap="medium")

    map_controls(run, row, "plain")
    below(run, drawn)
    if run.view.kind == "cross" and "encoder" in run.trace.kinds:
        label = say("Show the encoder's self-attention, where B is A")
        there = partial(session.replace, run.slot, kind="encoder")
        st.button(label, key=run.key("plain_within"), on_click=there, icon=":material/arrow_forward:")


def lines(run: AnyRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    map_controls(run, row, "flow")
    below(run, partial(_lines, run))


def _lines(run: AnyRun) -> None:
    drawn = pictures.drawn_flow(run, run.run_id)
    if not drawn.flow.weights.size:
        st.info(ALL_SPECIAL)
        return
    view, flow, rows, columns = run.view, drawn.flow, drawn.rows, drawn.columns
    n_heads, n_queries, n_keys = run.trace.maps(view.kind).shape[1], len(rows), len(columns)
    slot, key, together = run.slot, run.key(pictures.FLOW), flow.together
    of = drawing.origin(key, say("{kind}, {layer}", kind=flow.kind, layer=flow.layer))
    if cover_box.stands_for(key):
        return
    cover_box.met(key, of.chart)

    def take() -> None:  # a session keeps it, so it must not hold the weights
        told = last_choice(key, n_heads=n_heads, n_queries=n_queries, n_keys=n_keys)
        row, column = (told.pin.index if told.pin and told.pin.side == side else None for side in ("query", "key"))
        query, place = None if row is None else rows[row][0], None if column is None else columns[column][0]
        heads: dict[str, Any] = {"head": None, "heads": told.heads}
        if len(told.heads) == 1:  # a single one is what the other parts look at, too
            heads = {"head": told.heads[0], "heads": ()}
        session.replace(slot, query=query, key=place, follow=told.following, **({} if together else heads))

    heads = [say("mean")] if flow.together else range(1, len(flow.weights) + 1)
    names = {"layers": [flow.layer], "heads": heads, "queries": flow.queries, "keys": flow.keys}
    # All weights: those of weak lines and of hidden heads, too.
    columns_of = partial(heads_columns, flow.weights[None], **names, allowed=flow.allowed)
    flow_view(
        flow,
        key=key,
        file=of.stem(key),
        table=drawing.table_behind(columns_of, of, key=key),
        alt=here(drawn.alt),
        caption=here(drawn.caption),
        choice=pictures.choice_of(drawn, view),
        on_choice=take,
    )
