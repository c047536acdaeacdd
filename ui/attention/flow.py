"""The flow view: the heads of one layer, or the mean of all, as lines between the pieces of both sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from charts.tables import heads_columns
from transformer.analysis.words import Span
from transformer.model.anatomy import Kind
from ui.attention.drawn_maps import ALL_SPECIAL, OTHER_SUMS, DrawnMap, drawn_map, find_span, first_from, words_note
from ui.components.flow.flow_view import Choice, Flow, Pin, flow_view, last_choice
from ui.runs.groups import prompt_row, size_of
from ui.runs.open_maps import AnyRun, OpenMaps
from ui.runs.sides import KIND_NAMES
from ui.shared import cover, drawing
from ui.shared.door import here, st
from ui.state import session
from words import joined, say

FLOW = "flow"
HOW_TO_READ = say(
    "How to read this: each line joins a query to a key that it looks at; its colour is the head, and the larger "
    "the weight the more opaque it is. A weight is softmax(q·k / √d_head + mask), the softmax taken over the "
    "keys: of all that one head brings to this query, the share that it takes from this key. The weights of one "
    "head and one query sum to 1."
)
HOW_TO_READ_GIVEN = say(
    "How to read this: each line joins a query to a key that it looks at; its colour is the head, and the larger "
    "the weight the more opaque it is."
)
MEAN_OF_ALL = say(
    "This is the mean of all heads of all layers: choose a layer to see the lines of its heads, which is what was "
    "computed."
)


@dataclass(frozen=True, eq=False)
class DrawnFlow:
    """The flow view's data, and which pieces each of its rows and columns stands for."""

    flow: Flow
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    notes: tuple[str, ...]
    alt: str


def draw(run: AnyRun) -> None:
    """Draw the lines of the chosen kind and layer."""
    drawn = drawn_flow(run)
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

    # The heads whose lines are drawn: the one that is looked at on all pages, else those chosen here; () for all.
    heads = () if together else view.heads if view.head is None else (view.head,)
    flow_view(
        flow,
        key=key,
        file=of.stem(key),
        table=drawing.table_behind(partial(_columns, flow), of, key=key),
        alt=here(drawn.alt),
        caption=here(joined(" ", (HOW_TO_READ_GIVEN if isinstance(run, OpenMaps) else HOW_TO_READ, *drawn.notes))),
        choice=Choice(
            tuple(head for head in heads if head < n_heads),
            _pin(drawn, view.query, view.key),
            following=view.follow,
        ),
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


def drawn_flow(run: AnyRun) -> DrawnFlow:
    """All heads of the chosen layer, cut to what may be seen; without a layer the mean of all heads, as one.

    Heads of the same number in different layers have nothing in common, so no mean is made of them.
    """
    view = run.view
    kind: Kind = view.kind
    n_heads = run.trace.maps(kind).shape[1]
    together = view.layer is None
    drawn = [_map(run, kind, None, None)] if together else [_map(run, kind, view.layer, n) for n in range(n_heads)]
    one = drawn[0]
    weights = np.array([of_head.weights for of_head in drawn])
    notes = [MEAN_OF_ALL] * together + [words_note(run.looking, view.kind)] * view.words
    if view.hide_special and weights.size and OTHER_SUMS not in one.notes:
        hidden = float(1 - weights.sum(axis=-1).mean())
        notes.append(
            say(
                "Special pieces are hidden, and with them on average {share:.2f} of a query's weight.",
                share=abs(hidden),
            )
        )
    name = one.name if view.layer is None else say("layer {layer}", layer=view.layer + 1)
    n_queries, n_keys, of = len(one.queries), len(one.keys), KIND_NAMES[kind]
    alt = say("Lines from {queries} queries to {keys} keys, one colour a head: {attention}, {layer}.",
              queries=n_queries, keys=n_keys, attention=of, layer=name)  # fmt: skip
    if together:
        alt = say("Lines from {queries} queries to {keys} keys: {attention}, {map}.",
                  queries=n_queries, keys=n_keys, attention=of, map=name)  # fmt: skip
    prompt = prompt_row(run, kind)
    flow = Flow(
        sentence=" ".join((run.run_id, kind, str(view.words), str(view.hide_special))),
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
        together=together,
        group=size_of(run),
        output=(None, None)
        if prompt is None
        else (first_from(one.rows, prompt), first_from(one.columns, prompt + 1)),
    )
    return DrawnFlow(flow, one.rows, one.columns, tuple(notes), alt)


def _map(run: AnyRun, kind: Kind, layer: int | None, head: int | None) -> DrawnMap:
    """The map of a head; without one the mean of all, whatever stands for them elsewhere."""
    view = replace(run.view, layer=layer, head=head, aggregate="mean")
    return drawn_map(replace(run.looking, view=view), run.checkpoint, kind)


def _pin(drawn: DrawnFlow, query: int | None, key: int | None) -> Pin | None:
    """The row of the query that is looked at on all pages; without one, the column of the key."""
    row, column = find_span(drawn.rows, query), find_span(drawn.columns, key)
    if row is not None:
        return Pin("query", row)
    return None if column is None else Pin("key", column)
