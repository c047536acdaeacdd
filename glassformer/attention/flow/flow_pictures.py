"""The flow view as data: the heads of one layer, or the mean of all, as lines between the pieces of both sides.

Knows nothing of Streamlit.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from glassformer.attention import AttentionLook
from glassformer.attention.attention_page import ATTENTION
from glassformer.attention.drawn_maps import OTHER_SUMS, DrawnMap, drawn_map, find_span, first_from, words_note
from glassformer.components.flow_data import Choice, Flow, Pin, flow_payload
from glassformer.runs.groups import prompt_row, size_of
from glassformer.runs.picture import Part
from glassformer.runs.seen import Drawn, Seen
from glassformer.runs.sides import KIND_NAMES
from glassformer.shared.saving import Origin
from glassformer.state.view import View
from transformer.analysis.words import Span
from transformer.i18n import joined, say
from transformer.model.anatomy import Kind

FLOW: Final = "flow"
HOW_TO_READ = say(
    "Each line joins a query to a key it attends to. Its colour shows the head; the larger the weight, the more "
    "opaque the line. The weight, softmax(q·k / √d_head + mask) over the keys, is the share of this key's value in "
    "what the head passes to the query. For each head and query, the weights sum to 1."
)
HOW_TO_READ_GIVEN = say(
    "Each line joins a query to a key it attends to. Its colour shows the head; the larger the weight, the more "
    "opaque the line."
)
MEAN_OF_ALL = say(
    "These lines show the mean over all heads of all layers. Choose a layer to see each of its heads, with the "
    "weights that the model actually computed."
)


@dataclass(frozen=True, eq=False)
class DrawnFlow:
    """The flow view's data, and which pieces each of its rows and columns stands for."""

    flow: Flow
    rows: tuple[Span, ...]
    columns: tuple[Span, ...]
    alt: str
    caption: str


def drawn_flow(run: Drawn, run_id: str) -> DrawnFlow:
    """All heads of the chosen layer, cut to what may be seen; without a layer the mean of all heads, as one.

    Heads of the same number in different layers have nothing in common, so no mean is made of them.
    """
    view = run.view
    kind: Kind = view.kind
    n_heads = run.looking.trace.maps(kind).shape[1]
    together = view.layer is None
    drawn = [_map(run, kind, None, None)] if together else [_map(run, kind, view.layer, n) for n in range(n_heads)]
    one = drawn[0]
    weights = np.array([of_head.weights for of_head in drawn])
    notes = [MEAN_OF_ALL] * together + [words_note(run.looking, view.kind)] * view.words
    if view.hide_special and weights.size and OTHER_SUMS not in one.notes:
        hidden = float(1 - weights.sum(axis=-1).mean())
        notes.append(
            say("Special pieces are hidden; on average, they get {share:.2f} of a query's weight.", share=abs(hidden))
        )
    name = one.name if view.layer is None else say("layer {layer}", layer=view.layer + 1)
    n_queries, n_keys, of = len(one.queries), len(one.keys), KIND_NAMES[kind]
    alt = say("Lines from {queries} queries to {keys} keys, one colour per head: {attention}, {layer}.",
              queries=n_queries, keys=n_keys, attention=of, layer=name)  # fmt: skip
    if together:
        alt = say("Lines from {queries} queries to {keys} keys: {attention}, {map}.",
                  queries=n_queries, keys=n_keys, attention=of, map=name)  # fmt: skip
    prompt = prompt_row(run, kind)
    flow = Flow(
        sentence=" ".join((run_id, kind, str(view.words), str(view.hide_special))),
        kind=KIND_NAMES[kind],
        layer=name,
        queries=tuple(one.queries),
        keys=tuple(one.keys),
        query_axis=one.sides.query_axis,
        key_axis=one.sides.key_axis,
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
    how = HOW_TO_READ_GIVEN if run.checkpoint is None else HOW_TO_READ
    return DrawnFlow(flow, one.rows, one.columns, alt, joined(" ", (how, *notes)))


PART: Part[Drawn] = ATTENTION.part("flow", lambda run: run)


@PART.other(FLOW, say("Flow"))
def saved_flow(run: Seen, of: Origin, key: str) -> dict[str, Any] | None:
    """The flow view of a run that is on no page; None where all pieces are special and hidden."""
    drawn = drawn_flow(run, key)
    if not drawn.flow.weights.size:
        return None
    choice = choice_of(drawn, run.view)
    return flow_payload(
        drawn.flow, choice, name=key, file=of.stem(key), table="", alt=drawn.alt, caption=drawn.caption
    )


def choice_of(drawn: DrawnFlow, view: View) -> Choice:
    """The heads whose lines are drawn: the one that is looked at on all pages, else those chosen here; () for all."""
    heads = () if drawn.flow.together else view.of(AttentionLook).heads if view.head is None else (view.head,)
    shown = tuple(head for head in heads if head < len(drawn.flow.weights))
    return Choice(shown, _pin(drawn, view.query, view.key), following=view.of(AttentionLook).follow)


def _map(run: Drawn, kind: Kind, layer: int | None, head: int | None) -> DrawnMap:
    """The map of a head; without one the mean of all, whatever stands for them elsewhere."""
    view = replace(run.view, layer=layer, head=head, aggregate="mean")
    return drawn_map(replace(run.looking, view=view), run.checkpoint, kind)


def _pin(drawn: DrawnFlow, query: int | None, key: int | None) -> Pin | None:
    """The row of the query that is looked at on all pages; without one, the column of the key."""
    row, column = find_span(drawn.rows, query), find_span(drawn.columns, key)
    if row is not None:
        return Pin("query", row)
    return None if column is None else Pin("key", column)
