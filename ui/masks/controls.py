"""The controls of the Masks page: which sentences run together, which one, which mask and which cell is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from charts.theme import capitalised, shortened
from transformer.analysis.mask_checks import BatchMasks
from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.runs.query import Query, check_source
from transformer.runs.trace import Trace
from ui.components.plotly.view import Click
from ui.masks.batch import Axes, Batch, companion_query, default_companions, fit_cell, verdict
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import on_click
from ui.shared.door import st
from ui.state import session
from ui.state.view import MOST_COMPANIONS, MaskName, MasksPanel, Slot, View
from words import joined, say

PANELS: dict[MasksPanel, str] = {"masks": say("The masks"), "one_row": say("One row"), "checks": say("Checks")}
MASKS: dict[MaskName, str] = {
    "source": say("Source padding"),
    "target": say("Target padding"),
    "causal": say("Causal"),
    "decoder": say("Padding and causal"),
    "cross": say("Cross-attention"),
}
ATTENTIONS: dict[MaskName, str] = {
    "source": say("Encoder self"),
    "decoder": say("Decoder self"),
    "cross": say("Cross-attention"),
}
BOX = "mask_companion_"
BATCH_MENU = "mask_batch_menu"
QUERY_BOX = "mask_query"
KEY_BOX = "mask_key"
CELL = "mask_cell"
SHOWN = 24  # characters of a sentence in its button


def choose_batch(run: OpenRun, row: Any) -> Batch | None:
    """Draw the menu of the batch's further sentences and the choice of one, and run the batch.

    Args:
        run: The run.
        row: Where the controls of the page stand.

    Returns:
        The batch; None if the model has too much to do.
    """
    with row, st.popover(say("Batch"), key=run.key(BATCH_MENU), help=say("The sentences that run together")):
        further = companions(run)
    return open_batch(run, further, row)


def companions(run: OpenRun) -> tuple[str, ...]:
    """Draw the boxes of the further sentences and return what they say."""
    chosen = run.link.companions
    if chosen is None:
        examples = run.checkpoint.card.tried() if shows_pads(run) else ()
        chosen = default_companions(run.checkpoint, run.trace.query.source, examples)
    for place in range(MOST_COMPANIONS):
        key = run.key(f"{BOX}{place}")
        st.session_state[key] = chosen[place] if place < len(chosen) else ""
        st.text_input(
            say("Together with ({n})", n=place + 1),
            key=key,
            on_change=partial(_keep_companions, run.slot),
            placeholder=say("Another sentence, or none"),
        )
    return tuple(chosen)


def shows_pads(run: OpenRun) -> bool:
    """Whether the page's sentence is padded unasked: under the causal mask alone pads would only be in the way.

    An address that names another sentence, or a cell behind the end of this one, means the padded batch.
    """
    view = session.view(run.slot)
    if view.mask != View.mask or view.masks_panel == "checks" or "decoder" not in run.trace.kinds:
        return True
    return view.sentence > 0 or max(view.query or 0, view.key or 0) >= run.trace.n_tokens("decoder")


def _keep_companions(slot: Slot) -> None:
    session.stand(slot, notes=())
    texts = [" ".join(st.session_state.get(f"{slot}{BOX}{place}", "").split()) for place in range(MOST_COMPANIONS)]
    for place, text in enumerate(texts):
        try:
            check_source(text)
        except QueryError as error:  # an address could not hold it
            session.add_note(_left_out(text, error), slot)
            texts[place] = ""
    while texts and not texts[-1]:
        texts.pop()
    st.session_state[f"{slot}{session.COMPANIONS}"] = tuple(texts)


def open_batch(run: OpenRun, further: Sequence[str], row: Any) -> Batch | None:
    """Run the page's sentence and its companions as one batch; says what was left out and why.

    Args:
        run: The run.
        further: The companions.
        row: Where the choice of a sentence stands.

    Returns:
        The batch; None if the model has too much to do.
    """
    if further and run.checkpoint.config.pad_id is None:
        st.info(say("This model has no padding piece to fill a batch with, so its sentence stands alone here."))
        further = ()
    queries, refused = _queries(run, further)
    traces = attempt(lambda: _run(run, queries, refused))
    if traces is None:
        return None
    if refused:
        st.warning(joined("  \n", map(drawing.plain, refused)), icon=":material/playlist_remove:")
    n_rows = len(traces[0].read_ids)
    return Batch(
        traces=traces,
        sentence=_which(run.slot, traces, row),
        n_rows=min(run.looking.n_rows, n_rows) if run.view.guess else n_rows,
        covered=run.looking.covered,
        parts=anatomy(run.checkpoint.config),
    )


def _queries(run: OpenRun, further: Sequence[str]) -> tuple[list[Query], list[str]]:
    """The queries of the batch, and a sentence for each companion that is none."""
    queries, refused = [run.trace.query], []
    for text in further:
        if not text.strip():
            continue
        try:
            queries.append(companion_query(run.trace.query, text))
        except QueryError as error:
            refused.append(_left_out(text, error))
    return queries, refused


def _run(run: OpenRun, queries: list[Query], refused: list[str]) -> tuple[Trace, ...]:
    """Run the batch; if it is refused, without those companions that are refused alone."""
    try:
        return loading.batch(run.checkpoint, queries)
    except QueryError:
        good = queries[:1]
        for query in queries[1:]:
            try:
                loading.runner().trace(run.checkpoint, query)
                good.append(query)
            except QueryError as error:
                refused.append(_left_out(query.source, error))
        return loading.batch(run.checkpoint, good)


def _left_out(text: str, error: QueryError) -> str:
    said = say("“{text}” is left out of the batch.", text=shortened(text, limit=40))
    return joined(" ", [said, capitalised(error.sentence)])


def _which(slot: Slot, traces: Sequence[Trace], row: Any) -> int:
    """Draw the choice of a sentence."""
    asked, last = session.view(slot).sentence, len(traces) - 1
    if asked > last:
        said = say("Sentence {n} was chosen; this batch has {count}. The last is shown.", n=asked + 1, count=last + 1)
        drawing.notes((said,))
        session.replace(slot, sentence=last)
    names = [drawing.plain(shortened(trace.source_text, limit=SHOWN)) for trace in traces]
    with row:
        kept = choices.field(slot, "sentence")
        return choices.menu(kept, say("Sentence looked at"), choices.labelled(names), bare=True, width=160)


def sections(slot: Slot) -> MasksPanel:
    """Draw the choice of a section."""
    return choices.choose(choices.field(slot, "masks_panel"), say("Part"), PANELS, bare=True)


def which_mask(slot: Slot, there: Sequence[MaskName]) -> MaskName:
    """Draw the choice of a mask among those that the model uses."""
    own = {name: label for name, label in MASKS.items() if name in there}
    return choices.menu(choices.field(slot, "mask"), say("Mask"), own, otherwise="causal", bare=True, width=172)


def which_attention(slot: Slot, there: Sequence[MaskName]) -> MaskName:
    """Draw the choice of an attention, named by the mask that it takes."""
    own = {name: label for name, label in ATTENTIONS.items() if name in there}
    kept = choices.field(slot, "mask", key="mask_attention")
    return choices.menu(kept, say("Attention and its mask"), own, otherwise="decoder", bare=True, width=148)


def say_missing(slot: Slot, shown: MaskName, there: Sequence[MaskName]) -> None:
    """Say that a mask is not the one that was asked for; nobody asked for the default."""
    asked = session.view(slot).mask
    if asked not in there and asked != View.mask:
        said = say(
            "The mask “{asked}” was chosen; this model does not use it. “{shown}” is shown.",
            asked=MASKS[asked],
            shown=MASKS[shown],
        )
        drawing.notes((said,))


def cell(run: OpenRun, name: MaskName, masks: BatchMasks, found: Axes, batch: Batch) -> tuple[int, int]:
    """Draw the choice of a cell [query, key], ask whether its query may see its key, and answer; returns the cell."""
    view = session.view(run.slot)
    chosen, notes = fit_cell(view.query, view.key, masks.whole(name)[batch.sentence])
    drawing.notes(notes)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=run.key(CELL)):
        _menus(run.slot, found, chosen)
        allowed, why = verdict(name, masks, found, batch, chosen)
        # A row's label also says what it predicts, and thereby what the key after it is: the answer.
        asked = say(
            "**May query {query}, which reads “{read}”, see key {key}, “{piece}”?**",
            query=chosen[0] + 1,
            read=drawing.plain(found.reads[chosen[0]]),
            key=chosen[1] + 1,
            piece=drawing.plain(found.keys[chosen[1]]),
        )
        icon = ":material/check_circle:" if allowed else ":material/block:"
        with st.container(key=run.key("mask_verdict")):
            st.markdown(joined(" ", [icon, asked, drawing.plain(why)]))
    return chosen


def _menus(slot: Slot, found: Axes, chosen: tuple[int, int]) -> None:
    shown = {"query": chosen[0], "key": chosen[1]}
    queries = {n: say("Query {n}: {piece}", n=n + 1, piece=piece) for n, piece in enumerate(found.queries)}
    keys = {n: say("Key {n}: {piece}", n=n + 1, piece=piece) for n, piece in enumerate(found.keys)}
    for field, box, name, labels in (
        ("query", QUERY_BOX, found.names[0], queries),
        ("key", KEY_BOX, found.names[1], keys),
    ):
        kept = choices.Kept(f"{slot}{box}", shown[field], partial(_take, slot, shown, field))
        choices.menu(kept, name, labels, bare=True, width=168)


def _take(slot: Slot, cell: dict[str, int], field: str, place: int) -> None:
    """Callback: of what is looked at one place changes, and the other is not the page's own choice any more."""
    session.replace(slot, **cell | {field: place})


def layer_and_head(run: OpenRun, n_layers: int, n_heads: int) -> tuple[int, int]:
    """Draw the choice of a layer and a head; where the view has a mean, it is the first."""
    view = run.view
    shown = {"layer": min(view.layer or 0, n_layers - 1), "head": view.head or 0}
    layer, head = (
        choices.Kept(run.key(f"mask_{name}"), place, partial(_take, run.slot, shown, name))
        for name, place in shown.items()
    )
    choices.menu_of_layers(layer, n_layers, all_together=False)
    choices.menu_of_heads(head, n_heads, all_together=False)
    return shown["layer"], shown["head"]


def follow_click(run: OpenRun, chart: str, read: Callable[[Click], tuple[int, int] | None]) -> Callable[[], None]:
    """A callback of a chart that looks at the cell that was clicked."""
    slot = run.slot
    return on_click(run.key(chart), read, lambda cell: session.replace(slot, query=cell[0], key=cell[1]))
