"""The controls of the Masks page: which sentences run together, which one, which mask and which cell is looked at."""

from functools import partial
from typing import Any

from glassformer.charts.theme import shortened
from glassformer.masks import MasksLook
from glassformer.masks.scene import ATTENTIONS, NAMES, Batch, Scene, batch_of, companions, fit_cell, left_out, verdict
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.shared import choices, drawing
from glassformer.shared.door import st
from glassformer.state import session
from glassformer.state.fields import MOST_COMPANIONS
from glassformer.state.view import Slot
from transformer.errors import QueryError
from transformer.i18n import joined, say
from transformer.runs.query import check_source

BOX = "mask_companion_"
SHOWN = 24  # characters of a sentence in its button


def choose_batch(run: OpenRun, row: Any) -> Batch | None:
    """Draw the menu of the batch's further sentences and the choice of one, and run the batch.

    Says what was left out and why; None if the model has too much to do. The choices stand in `row`.
    """
    with (
        row,
        st.popover(
            say("Batch"), key=run.key("mask_batch_menu"), help=say("The sentences that run together as one batch")
        ),
    ):
        chosen = companions(run)
        for place in range(MOST_COMPANIONS):
            key = run.key(f"{BOX}{place}")
            st.session_state[key] = chosen[place] if place < len(chosen) else ""
            st.text_input(
                say("Together with ({n})", n=place + 1),
                key=key,
                on_change=partial(_keep_companions, run.slot),
                placeholder=say("Another sentence (optional)"),
            )
    if chosen and run.checkpoint.config.pad_id is None:
        st.info(say("This model has no padding piece to fill a batch with, so your sentence runs alone."))
    found = attempt(lambda: batch_of(run))
    if found is None:
        return None
    batch, refused = found
    if refused:
        st.warning(joined("  \n", map(drawing.plain, refused)), icon=":material/playlist_remove:")
    _choose_sentence(run, batch, row)
    return batch


def _keep_companions(slot: Slot) -> None:
    session.stand(slot, notes=())
    texts = [" ".join(st.session_state.get(f"{slot}{BOX}{place}", "").split()) for place in range(MOST_COMPANIONS)]
    for place, text in enumerate(texts):
        try:
            check_source(text)
        except QueryError as error:  # an address could not hold it
            session.add_note(left_out(text, error), slot)
            texts[place] = ""
    while texts and not texts[-1]:
        texts.pop()
    st.session_state[f"{slot}{session.COMPANIONS}"] = tuple(texts)


def _choose_sentence(run: OpenRun, batch: Batch, row: Any) -> None:
    asked, count = run.view.of(MasksLook).sentence, len(batch.traces)
    if asked is not None and asked >= count:
        said = say(
            "Sentence {n} was chosen, but this batch ends at sentence {count}, which is shown instead.",
            n=asked + 1,
            count=count,
        )
        drawing.notes((said,))
        session.replace(run.slot, sentence=batch.sentence)
    names = [shortened(trace.source_text, limit=SHOWN) for trace in batch.traces]  # a menu shows text as it is
    with row:
        kept = choices.field(run.slot, "sentence")
        named = choices.labelled(names)
        choices.menu(kept, say("Sentence looked at"), named, otherwise=batch.sentence, bare=True, width=160)


def choose_mask(scene: Scene, row: Any) -> None:
    """Draw the choice of a mask among those that the model uses; of one row also that of a layer and a head."""
    look, slot = scene.run.view.of(MasksLook), scene.slot
    one_row = look.masks_panel == "one_row"
    own = {name: label for name, label in (ATTENTIONS if one_row else NAMES).items() if name in scene.masks.names}
    with row:
        if one_row:  # an attention is named by the mask that it takes
            kept = choices.field(slot, "mask", key="mask_attention")
            choices.menu(kept, say("Attention and its mask"), own, otherwise=scene.name, bare=True, width=148)
            _layer_and_head(scene)
        else:
            choices.menu(choices.field(slot, "mask"), say("Mask"), own, otherwise=scene.name, bare=True, width=172)
    if look.mask not in scene.masks.names and look.mask != MasksLook.mask:  # nobody asked for the default
        said = say(
            "The mask “{asked}” was chosen, but this model does not use it. “{shown}” is shown instead.",
            asked=NAMES[look.mask],
            shown=NAMES[scene.name],
        )
        drawing.notes((said,))


def _layer_and_head(scene: Scene) -> None:
    attention = scene.batch.parts.attention(scene.kind)
    shown = dict(zip(("layer", "head"), scene.where, strict=True))
    layer, head = (
        choices.Kept(scene.run.key(f"mask_{name}"), place, partial(_take, scene.slot, shown, name))
        for name, place in shown.items()
    )
    choices.menu_of_layers(layer, attention.n_layers, all_together=False)
    n_heads = scene.run.checkpoint.config.of(attention.stack).n_heads
    choices.menu_of_heads(head, n_heads, all_together=False)


def cell(scene: Scene) -> None:
    """Draw the choice of a cell [query, key], ask whether its query may see its key, and answer."""
    view, found, chosen = scene.run.view, scene.axes, scene.cell
    drawing.notes(fit_cell(view.query, view.key, scene.whole, found.real_queries)[1])
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=scene.run.key("mask_cell")):
        _menus(scene)
        allowed, why = verdict(scene)
        # A row's label also says what it predicts, and thereby what the key after it is: the answer.
        asked = say("**May query {query}, which reads “{read}”, see key {key}, “{piece}”?**", query=chosen[0] + 1,
                    read=drawing.plain(found.reads[chosen[0]]), key=chosen[1] + 1,
                    piece=drawing.plain(found.keys[chosen[1]]))  # fmt: skip
        icon = ":material/check_circle:" if allowed else ":material/block:"
        with st.container(key=scene.run.key("mask_verdict")):
            st.markdown(joined(" ", [icon, asked, drawing.plain(why)]))


def _menus(scene: Scene) -> None:
    found, shown = scene.axes, dict(zip(("query", "key"), scene.cell, strict=True))
    queries = {n: say("Query {n}: {piece}", n=n + 1, piece=piece) for n, piece in enumerate(found.queries)}
    keys = {n: say("Key {n}: {piece}", n=n + 1, piece=piece) for n, piece in enumerate(found.keys)}
    for field, name, labels in (("query", found.names[0], queries), ("key", found.names[1], keys)):
        kept = choices.Kept(scene.run.key(f"mask_{field}"), shown[field], partial(_take, scene.slot, shown, field))
        choices.menu(kept, name, labels, bare=True, width=168)


def _take(slot: Slot, shown: dict[str, int], field: str, place: int) -> None:
    """Callback: of what is looked at one place changes, and the other is not the page's own choice any more."""
    session.replace(slot, **shown | {field: place})
