"""The controls of the Masks page: which sentences run together, which one, which mask and which cell is looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st

from charts.theme import shortened
from transformer.errors import GlassformerError, QueryError
from transformer.runs.query import Query, check_source
from transformer.runs.trace import Trace
from ui.masks.batch import Axes, Batch, companion_query, default_companions, fit_cell
from ui.runs import loading
from ui.runs.open_run import OpenRun, sentence
from ui.runs.work import BusyError
from ui.shared import drawing
from ui.shared.choices import KEEP
from ui.state import keys, session
from ui.state.view import MOST_COMPANIONS, MaskName

PANELS = {"masks": "The masks", "one_row": "One row", "checks": "Checks"}
MASKS: dict[MaskName, str] = {
    "source": "Source padding",
    "target": "Target padding",
    "causal": "Causal",
    "decoder": "Padding and causal",
    "cross": "Cross",
}
TITLES: dict[MaskName, str] = {**MASKS, "cross": "Cross-attention"}
BOX = "mask_companion_"
BATCH_ROW = "mask_batch_row"
BATCH_MENU = "mask_batch_menu"
QUERY_BOX = "mask_query"
KEY_BOX = "mask_key"
SHOWN = 24  # characters of a sentence in its button


def choose_batch(run: OpenRun) -> Batch | None:
    """Draw the choice of a sentence, beside it the menu of the batch's further sentences, and run the batch.

    Returns:
        The batch; None if the model has too much to do.
    """
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=BATCH_ROW)
    choice = row.container(width="content")
    with row.popover("Change the batch", key=BATCH_MENU):
        further = companions(run)
    with choice:
        return open_batch(run, further)


def companions(run: OpenRun) -> tuple[str, ...]:
    """Draw the boxes of the further sentences and return what they say."""
    own = default_companions(run.checkpoint, run.trace.query.source, run.checkpoint.card.tried())
    chosen = run.link.companions if run.link.companions is not None else own
    for place in range(MOST_COMPANIONS):
        key = f"{BOX}{place}"
        st.session_state[key] = chosen[place] if place < len(chosen) else ""
        st.text_input(
            f"Together with ({place + 1})",
            key=key,
            on_change=_keep_companions,
            placeholder="Another sentence, or none",
        )
    return tuple(chosen)


def _keep_companions() -> None:
    st.session_state[keys.LINK_NOTES] = ()
    texts = [" ".join(st.session_state.get(f"{BOX}{place}", "").split()) for place in range(MOST_COMPANIONS)]
    for place, text in enumerate(texts):
        try:
            check_source(text)
        except QueryError as error:  # an address could not hold it
            session.add_note(_left_out(text, error))
            texts[place] = ""
    while texts and not texts[-1]:
        texts.pop()
    st.session_state[keys.COMPANIONS] = tuple(texts)


def open_batch(run: OpenRun, further: Sequence[str]) -> Batch | None:
    """Run the page's sentence and its companions as one batch; says what was left out and why.

    Returns:
        The batch; None if the model has too much to do.
    """
    queries, refused = _queries(run, further)
    try:
        traces = _run(run, queries, refused)
    except (GlassformerError, BusyError) as error:
        st.error(drawing.plain(sentence(error)))
        return None
    if refused:
        st.warning("  \n".join(map(drawing.plain, refused)), icon=":material/playlist_remove:")
    looking = run.looking
    guess = run.view.guess
    return Batch(
        traces=traces,
        sentence=_which(traces),
        n_rows=min(looking.n_rows, len(traces[0].read_ids)) if guess else len(traces[0].read_ids),
        covered=looking.covered,
        pad_id=run.checkpoint.config.pad_id,
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
    return f"“{shortened(text, limit=40)}” is left out of the batch. {sentence(error)}"


def _which(traces: Sequence[Trace]) -> int:
    """Draw the choice of a sentence."""
    asked = st.session_state.get(keys.SENTENCE) or 0
    if asked >= len(traces):
        drawing.notes((f"Sentence {asked + 1} was chosen; this batch has {len(traces)}. The last is shown.",))
    st.session_state[keys.SENTENCE] = min(asked, len(traces) - 1)
    names = [f"{i}: {drawing.plain(shortened(trace.source_text, limit=SHOWN))}" for i, trace in enumerate(traces, 1)]
    chosen = st.segmented_control(
        "Sentence looked at",
        list(range(len(traces))),
        key=keys.SENTENCE,
        format_func=lambda i: names[i],
        required=True,
        persist_state=KEEP,
        wrap=True,
    )
    return chosen or 0


def sections() -> str:
    """Draw the choice of a section."""
    st.session_state.setdefault(keys.MASKS_PANEL, "masks")
    chosen = st.segmented_control(
        "Part",
        list(PANELS),
        key=keys.MASKS_PANEL,
        format_func=lambda name: PANELS[name],
        required=True,
        persist_state=KEEP,
        wrap=True,
    )
    return chosen or "masks"


def which_mask() -> MaskName:
    """Draw the choice of a mask."""
    st.session_state.setdefault(keys.MASK, "source")
    chosen = st.segmented_control(
        "Mask",
        list(MASKS),
        key=keys.MASK,
        format_func=lambda name: MASKS[name],
        required=True,
        persist_state=KEEP,
        wrap=True,
    )
    return chosen or "source"


def cell(found: Axes, mask: np.ndarray) -> tuple[int, int]:
    """Draw the choice of a cell of a mask [query, key] and return it."""
    get = st.session_state.get
    chosen, notes = fit_cell(get(keys.QUERY), get(keys.KEY), mask)
    drawing.notes(notes)
    boxes = st.columns(2, gap="small")
    for column, name, box, labels, place in (
        (boxes[0], found.names[0], QUERY_BOX, found.queries, chosen[0]),
        (boxes[1], found.names[1], KEY_BOX, found.keys, chosen[1]),
    ):
        st.session_state[box] = place
        column.selectbox(
            name,
            list(range(len(labels))),
            key=box,
            format_func=_numbered_label(labels),
            on_change=_keep_cell,
        )
    return chosen


def _numbered_label(labels: Sequence[str]) -> Callable[[int], str]:
    # Streamlit also asks for the label of what was chosen before, which another sentence may not have.
    return lambda i: f"{i + 1}: {labels[i]}" if i < len(labels) else str(i + 1)


def _keep_cell() -> None:
    look_at(st.session_state[QUERY_BOX], st.session_state[KEY_BOX])


def look_at(query: int, key: int) -> None:
    """Callback: look at another cell."""
    st.session_state[keys.QUERY], st.session_state[keys.KEY] = query, key


def layer_and_head(run: OpenRun, n_layers: int) -> tuple[int, int]:
    """Draw the choice of a layer and a head; where the view has a mean, it is the first."""
    view, n_heads = run.view, run.checkpoint.config.n_heads
    layer = min(view.layer or 0, n_layers - 1)
    head = view.head or 0
    boxes = st.columns(2, gap="small")
    _numbered(boxes[0], "Layer", "mask_layer", layer, n_layers)
    _numbered(boxes[1], "Head", "mask_head", head, n_heads)
    if view.layer is None or view.head is None:
        st.caption("A mean of heads has no scores of its own, so one head is shown.")
    return layer, head


def _numbered(box: st.delta_generator.DeltaGenerator, name: str, key: str, value: int, count: int) -> None:
    st.session_state[key] = value
    box.segmented_control(
        name,
        list(range(count)),
        key=key,
        format_func=lambda i: str(i + 1),
        required=True,
        on_change=_keep_layer_and_head,
    )


def _keep_layer_and_head() -> None:
    for key, widget in ((keys.LAYER, "mask_layer"), (keys.HEAD, "mask_head")):
        st.session_state[key] = str(st.session_state[widget] + 1)


def follow_click(chart_key: str, read: Callable[[str], tuple[int, int] | None]) -> Callable[[], None]:
    """A callback that looks at the cell that was clicked.

    Args:
        chart_key: Of the chart.
        read: The cell of the last click; None if it was on no cell.
    """

    def go() -> None:
        chosen = read(chart_key)
        if chosen is not None:
            look_at(*chosen)

    return go


def which_attention(mask: MaskName) -> MaskName:
    """Draw the choice of an attention, named by the mask that it takes."""
    options: dict[MaskName, str] = {
        "source": "Encoder (padding)",
        "decoder": "Decoder (padding, causal)",
        "cross": "Cross (padding)",
    }
    chosen: MaskName = mask if mask in options else "decoder"
    st.session_state["mask_attention"] = chosen

    def keep() -> None:
        st.session_state[keys.MASK] = st.session_state["mask_attention"]

    st.segmented_control(
        "Attention and its mask",
        list(options),
        key="mask_attention",
        format_func=lambda name: options[name],
        required=True,
        on_change=keep,
        wrap=True,
    )
    return chosen


def carry_over() -> None:
    """Keep what this page's hidden widgets hold: the mask is chosen in one section and used in another."""
    for key in (keys.MASK, keys.SENTENCE):
        if key in st.session_state:
            st.session_state[key] = st.session_state[key]
