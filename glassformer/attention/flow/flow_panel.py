"""The flow view: the heads of one layer, or the mean of all, as lines between the pieces of both sides."""

from functools import partial
from typing import Any

from glassformer.attention.attention_panels import below, controls
from glassformer.attention.drawn_maps import ALL_SPECIAL
from glassformer.attention.flow.flow_pictures import FLOW, choice_of, drawn_flow
from glassformer.charts.tables import heads_columns
from glassformer.components.flow_data import Flow
from glassformer.components.flow_view import flow_view, last_choice
from glassformer.runs.open_maps import AnyRun
from glassformer.shared import cover, drawing
from glassformer.shared.door import here, st
from glassformer.state import session
from transformer.i18n import say


def draw(run: AnyRun, row: Any) -> None:
    """Draw the part, with its controls in `row`."""
    controls(run, row, "flow")
    below(run, partial(_lines, run))


def _lines(run: AnyRun) -> None:
    """The lines of the chosen kind and layer."""
    drawn = drawn_flow(run, run.run_id)
    if not drawn.flow.weights.size:
        st.info(ALL_SPECIAL)
        return
    view, flow, rows, columns = run.view, drawn.flow, drawn.rows, drawn.columns
    n_heads, n_queries, n_keys = run.trace.maps(view.kind).shape[1], len(rows), len(columns)
    slot, key, together = run.slot, run.key(FLOW), flow.together
    of = drawing.origin(key, say("{kind}, {layer}", kind=flow.kind, layer=flow.layer))
    if cover.stands_for(key):
        return
    cover.met(key, of.chart)

    def take() -> None:  # a session keeps it, so it must not hold the weights
        told = last_choice(key, n_heads=n_heads, n_queries=n_queries, n_keys=n_keys)
        row, column = (told.pin.index if told.pin and told.pin.side == side else None for side in ("query", "key"))
        query, place = None if row is None else rows[row][0], None if column is None else columns[column][0]
        heads: dict[str, Any] = {"head": None, "heads": told.heads}
        if len(told.heads) == 1:  # a single one is what the other parts look at, too
            heads = {"head": told.heads[0], "heads": ()}
        session.replace(slot, query=query, key=place, follow=told.following, **({} if together else heads))

    flow_view(
        flow,
        key=key,
        file=of.stem(key),
        table=drawing.table_behind(partial(_columns, flow), of, key=key),
        alt=here(drawn.alt),
        caption=here(drawn.caption),
        choice=choice_of(drawn, view),
        on_choice=take,
    )


def _columns(flow: Flow) -> dict[str, Any]:
    """The weights of all heads as a table: those of weak lines and of hidden heads, too."""
    return heads_columns(
        flow.weights[None],
        layers=[flow.layer],
        heads=[say("mean")] if flow.together else range(1, len(flow.weights) + 1),
        queries=flow.queries,
        keys=flow.keys,
        allowed=flow.allowed,
    )
