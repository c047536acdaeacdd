"""The flow view: all heads of one layer as lines between the pieces of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from transformer.analysis.words import Span
from transformer.model.anatomy import Kind
from ui.attention import controls
from ui.attention.maps import ALL_SPECIAL, DrawnMap, drawn_map, find_span, words_note
from ui.components.flow.view import Flow, Pin, flow_view, last_pin
from ui.runs.open_run import OpenRun
from ui.runs.sides import KIND_NAMES
from ui.shared.door import here, st
from ui.state import session
from words import joined, say

FLOW = "flow"
ROW = "flow_controls"
HOW_TO_READ = say(
    "How to read this: each line joins a query to a key that it looks at; its colour is the head, and the larger "
    "the weight the more opaque it is. A weight is softmax(q·k / √d_head + mask), the softmax taken over the "
    "keys: of all that one head brings to this query, the share that it takes from this key. The weights of one "
    "head and one query sum to 1."
)
MEAN_OF_LAYERS = say(
    "This is a mean over all layers: heads of the same number in different layers were averaged, though they have "
    "nothing else in common. Choose a layer to see what was computed."
)


@dataclass(frozen=True, eq=False)
class DrawnFlow:
    """The flow view's data, and which pieces each of its rows and columns stands for."""

    flow: Flow
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    notes: tuple[str, ...]
    alt: str


def draw(run: OpenRun) -> None:
    """Draw the lines of the chosen kind and layer."""
    drawn = drawn_flow(run)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center", key=run.key(ROW)):
        controls.pieces(run.slot)
    if not drawn.flow.weights.size:
        st.info(ALL_SPECIAL)
        return
    view, flow, rows, columns = run.view, drawn.flow, drawn.rows, drawn.columns
    n_queries, n_keys = len(rows), len(columns)
    slot, key = run.slot, run.key(FLOW)

    def take_pin() -> None:  # a session keeps it, so it must not hold the weights
        pin = last_pin(key, n_queries=n_queries, n_keys=n_keys)
        row, column = (pin.index if pin and pin.side == side else None for side in ("query", "key"))
        query, place = None if row is None else rows[row][0], None if column is None else columns[column][0]
        session.replace(slot, query=query, key=place)

    flow_view(
        flow,
        key=key,
        alt=here(drawn.alt),
        caption=here(joined(" ", (HOW_TO_READ, *drawn.notes))),
        head=view.head,
        pin=_pin(drawn, view.query, view.key),
        on_pin=take_pin,
    )


def drawn_flow(run: OpenRun) -> DrawnFlow:
    """All heads of the chosen layer, cut to what may be seen; without a layer, each head's mean over all layers."""
    view = run.view
    kind: Kind = view.kind
    n_layers, n_heads = run.trace.maps(kind).shape[:2]
    layers = range(n_layers) if view.layer is None else [view.layer]
    by_head = [[_head(run, kind, layer, head) for layer in layers] for head in range(n_heads)]
    one = by_head[0][0]
    weights = np.array([np.mean([of_layer.weights for of_layer in heads], axis=0) for heads in by_head])
    notes = [MEAN_OF_LAYERS] * (view.layer is None) + [words_note(view.kind)] * view.words
    if view.hide_special and weights.size:
        hidden = float(1 - weights.sum(axis=-1).mean())
        notes.append(
            say(
                "Special pieces are hidden, and with them on average {share:.2f} of a query's weight.",
                share=abs(hidden),
            )
        )
    mean = say("mean of all {layers} layers", layers=n_layers)
    name = mean if view.layer is None else say("layer {layer}", layer=view.layer + 1)
    alt = say(
        "Lines from {queries} queries to {keys} keys, one colour a head: {attention}, {layer}.",
        queries=len(one.queries),
        keys=len(one.keys),
        attention=KIND_NAMES[kind],
        layer=name,
    )
    flow = Flow(
        sentence=" ".join((run.stepper.run_id, kind, str(view.words), str(view.hide_special))),
        kind=here(KIND_NAMES[kind]),
        layer=here(name),
        queries=tuple(one.queries),
        keys=tuple(one.keys),
        query_axis=here(one.sides.query_axis),
        key_axis=here(one.sides.key_axis),
        query_side=one.sides.query_side,
        key_side=one.sides.key_side,
        weights=weights,
        allowed=one.allowed,
        row_of_step=tuple(one.row_of_step()),
    )
    return DrawnFlow(flow, one.rows, one.columns, tuple(notes), alt)


def _head(run: OpenRun, kind: Kind, layer: int, head: int) -> DrawnMap:
    view = replace(run.view, layer=layer, head=head)
    return drawn_map(replace(run.looking, view=view), run.checkpoint, kind)


def _pin(drawn: DrawnFlow, query: int | None, key: int | None) -> Pin | None:
    """The row of the query that is looked at on all pages; without one, the column of the key."""
    row, column = find_span(drawn.rows, query), find_span(drawn.columns, key)
    if row is not None:
        return Pin("query", row)
    return None if column is None else Pin("key", column)
