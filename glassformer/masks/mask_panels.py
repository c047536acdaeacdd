"""Masks page: choice of batch, mask and cell; all masks; one row before and after; causality and padding checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from glassformer.charts.theme import shortened
from glassformer.masks import MasksLook, mask_pictures, mask_texts
from glassformer.masks.scene import (
    ATTENTIONS,
    KINDS,
    MASKS,
    NAMES,
    Batch,
    MasksScene,
    batch_of,
    companions,
    fit_cell,
    left_out,
    scene_of,
    verdict,
)
from glassformer.runs.error_boundary import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.run_address import address
from glassformer.runs.show import show
from glassformer.shared import controls, drawing, menu
from glassformer.shared.i18n import frame, st
from glassformer.state import session
from glassformer.state.fields import MOST_COMPANIONS
from glassformer.state.view import Slot
from transformer.errors import QueryError
from transformer.i18n import joined, say
from transformer.i18n.sentence import written
from transformer.model.attention_scores import plain_scores
from transformer.runs.query import check_source

if TYPE_CHECKING:
    import pandas as pd

CHECKS = "causality"  # the anchor of the checks


def choose_batch(run: OpenRun, row: Any) -> Batch | None:
    """Draw the menu of the batch's further sentences and the choice of one, in `row`, and run the batch.

    Says what was left out and why; None if the model is too busy.
    """
    with row, st.popover(say("Batch"), key=run.key("mask_batch_menu")):
        chosen = companions(run)
        texts = [*chosen, *[""] * MOST_COMPANIONS][:MOST_COMPANIONS]
        keys = [controls.folded_key(run.key(f"mask_companion_{place}"), text) for place, text in enumerate(texts)]
        keep, placeholder = partial(_keep_companions, run.slot, keys), say("Another sentence (optional)")
        for n, key in enumerate(keys, start=1):
            st.text_input(say("Together with ({n})", n=n), key=key, on_change=keep, placeholder=placeholder)
    if chosen and run.checkpoint.config.pad_id is None:
        st.info(say("This model has no padding token to fill a batch with, so your sentence runs alone."))
    found = attempt(lambda: batch_of(run))
    if found is None:
        return None
    batch, refused = found
    if refused:
        st.warning(joined("  \n", map(drawing.plain, refused)), icon=":material/playlist_remove:")
    _choose_sentence(run, batch, row)
    return batch


def _keep_companions(slot: Slot, keys: Sequence[str]) -> None:
    session.stand(slot, notes=())
    texts = [" ".join(st.session_state.get(key, "").split()) for key in keys]
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
    named = controls.labelled([shortened(trace.source_text, limit=24) for trace in batch.traces])
    with row:
        kept = controls.field(run.slot, "sentence")
        controls.menu(kept, say("Sentence looked at"), named, otherwise=batch.sentence, bare=True, width=160)


def choose_mask(scene: MasksScene, row: Any) -> None:
    """Draw the choice of a mask among those that the model uses."""
    look, slot = scene.run.view.of(MasksLook), scene.slot
    own = {name: label for name, label in NAMES.items() if name in scene.masks.names}
    with row:
        controls.menu(controls.field(slot, "mask"), say("Mask"), own, otherwise=scene.name, bare=True, width=172)
    if look.mask not in scene.masks.names and look.mask != MasksLook.mask:  # nobody asked for the default
        said = say(
            "The mask “{asked}” was chosen, but this model does not use it. “{shown}” is shown instead.",
            asked=NAMES[look.mask],
            shown=NAMES[scene.name],
        )
        drawing.notes((said,))


def cell(scene: MasksScene) -> None:
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


def _menus(scene: MasksScene) -> None:
    found, shown = scene.axes, dict(zip(("query", "key"), scene.cell, strict=True))
    queries = [say("Query {n}: {piece}", n=n, piece=piece) for n, piece in enumerate(found.queries, start=1)]
    keys = [say("Key {n}: {piece}", n=n, piece=piece) for n, piece in enumerate(found.keys, start=1)]
    each = controls.together(scene.slot, shown, key="mask_")
    for kept, name, labels in zip(each, found.names, (queries, keys), strict=True):
        controls.menu(kept, name, dict(enumerate(labels)), bare=True, width=168)


MOST_BESIDE = 20  # keys of a map that has another beside it
NOT_PLAIN = say(
    "This model's scores are not simply q·k / √d_head; this page shows the scores that the model actually computes."
)


def draw(run: OpenRun) -> None:
    """Draw the masks, and folded one row and the checks."""
    row = controls.bar(run.slot)
    batch = choose_batch(run, row)
    if batch is None:
        return
    if run.view.guess and batch.parts.writes:
        st.info(mask_texts.GUESSING, icon=":material/visibility_off:")
    scene = scene_of(run, batch)
    choose_mask(scene, row)
    if special := mask_texts.about_special(run.checkpoint.config, scene.name):
        st.info(drawing.with_code(special))
    _masks(scene)
    for name, draw_part in (("one_row", _one_row), ("checks", _checks)):
        key, title = run.key(f"mask_fold_{name}"), MASKS.listed()[name].title
        st.session_state[key] = run.view.of(MasksLook).masks_panel == name
        fold = st.expander(title, type="compact", key=key, on_change=partial(_unfold, run.slot, name, key))
        if fold.open:
            with fold:
                draw_part(scene)
    with st.expander(say("In code: two conventions, common mistakes"), type="compact"):
        st.code(mask_texts.CONVERSION, language="python")
        st.warning(mask_texts.TORCH, icon=":material/warning:")
        st.markdown(mask_texts.MISTAKES)


def _unfold(slot: Slot, name: str, key: str) -> None:
    """Callback: the address says what is unfolded, which is one thing at a time."""
    session.replace(slot, masks_panel=name if st.session_state[key] else "masks")


def _changed(scene: MasksScene) -> None:
    """Say what the run's change does to the mask, and lead to what later tokens do in one pass."""
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=scene.run.key("mask_changed_row")):
        st.markdown(mask_texts.about_changed(scene.changed, scene.whole), width="content")
        if _opens_later(scene):
            there = address(scene.run.checkpoint, scene.run.link, masks_panel="checks")
            menu.link("masks", say("See what later tokens do"), there, icon=":material/arrow_downward:", at=CHECKS)


def _opens_later(scene: MasksScene) -> bool:
    """Whether the run's change lets the decoder's queries see tokens that the mask hides."""
    return scene.kind == "decoder" and bool((scene.changed & scene.whole).any())


def _masks(scene: MasksScene) -> None:
    if scene.run.trace.query.interventions:
        _changed(scene)
    cell(scene)
    if len(scene.axes.keys) <= MOST_BESIDE:
        left, right = st.columns(2, gap="medium")
    else:  # a long sentence's pieces are read only on the whole width, and its cells have no room for signs
        left, right = st.container(), st.expander(mask_pictures.as_additive.title)
    with left:
        show(mask_pictures.as_bool, scene)
    with right:
        show(mask_pictures.as_additive, scene)
    own = scene.run.checkpoint.config.of(scene.batch.parts.attention(scene.kind).stack)
    if len(scene.batch.traces) > 1:
        show(mask_pictures.batch, scene)
    cells, different = _differences(scene)
    said = [
        mask_texts.about_mask(scene.name, scene.masks, n_heads=own.n_heads),
        mask_texts.about_batch(scene.batch),
        mask_texts.agreement(cells, different) if cells else "",
        mask_texts.without_mask(scene.batch) if scene.batch.parts.writes else "",
    ]
    drawing.explain(*map(drawing.plain, said))


def _differences(scene: MasksScene) -> tuple[int, int]:
    """How many cells the run recorded for its attentions, and how many of them these masks have otherwise."""
    cells = different = 0
    if scene.used is not scene.masks:
        return 0, 0  # a change acts on a run that is written step by step otherwise than on one pass
    for name in (name for name in ATTENTIONS if name in scene.masks.names):
        whole = scene.masks.whole(name)
        for place, trace in enumerate(scene.batch.traces):
            if trace.masks[KINDS[name]].ndim == 3:
                continue  # layers have windows besides
            recorded = trace.mask(KINDS[name])[: whole.shape[1], : whole.shape[2]]
            cells += recorded.size
            different += int((recorded != whole[place]).sum())
    return cells, different


def _one_row(scene: MasksScene) -> None:
    attention = scene.batch.parts.attention(scene.kind)
    layer, head = controls.together(scene.slot, dict(zip(("layer", "head"), scene.where, strict=True)), key="mask_")
    with st.container(horizontal=True, gap="small"):
        controls.menu_of_layers(layer, attention.n_layers, all_together=False)
        n_heads = scene.run.checkpoint.config.of(attention.stack).n_heads
        controls.menu_of_heads(head, n_heads, all_together=False)
    row = attempt(lambda: mask_pictures.row_of(scene))
    if row is None:
        return
    show(mask_pictures.one_row, scene)
    said: list[str] = [mask_texts.about_cell(row.scores, row.allowed, row.weights, scene.cell, filled=row.filled)]
    if scene.run.view.layer is None or scene.run.view.head is None:
        said.append(say("A mean over heads has no scores of its own, so one head is shown instead."))
    if not plain_scores(scene.run.checkpoint.config):
        said.append(NOT_PLAIN)
    drawing.explain(*map(drawing.plain, said))
    with st.expander(say("The numbers of this row")):
        st.dataframe(_numbers(row, scene.axes.keys), hide_index=True)


def _numbers(row: mask_pictures.MaskedRow, keys: list[str]) -> pd.DataFrame:
    cells = list(zip(row.scores, row.allowed, row.weights, row.reasons, strict=True))
    return frame(
        {
            say("Key"): [f"{place + 1}: {piece}" for place, piece in enumerate(keys)],
            say("Score"): [written(f"{score:.6f}") for score in row.scores],
            say("May attend"): [say("True") if may else say("False: {reason}", reason=why) for _, may, _, why in cells],
            say("Added"): ["0" if may else mask_texts.added(row.filled) for _, may, _, _ in cells],
            say("After the mask"): [written(f"{score:.6f}") if may else row.filled for score, may, _, _ in cells],
            say("Weight"): [f"{weight:.6f}" if may or weight else say("closed") for _, may, weight, _ in cells],
        }
    )


def _checks(scene: MasksScene) -> None:
    found = attempt(lambda: [_causality(scene), _padding(scene)])
    for check in list(filter(None, found or ()))[:1]:
        drawing.explain(drawing.plain(mask_texts.about_rounding(check.moved)))


def _causality(scene: MasksScene) -> mask_pictures.Check | None:
    title = say("Causality: change a later token, and earlier rows must stay the same")
    st.subheader(title, divider=False, anchor=CHECKS)
    changed, batch = mask_pictures.changed_token(scene), scene.batch
    if changed is None:
        st.info(mask_texts.nothing_later(batch), icon=":material/info:")
        return None
    pieces = batch.pieces("target", batch.sentence)
    tokens = controls.labelled(pieces[: batch.n_target(batch.sentence)], first=1)
    kept = controls.field(scene.slot, "changed", key="mask_changed")
    controls.menu(kept, say("Token to change"), tokens, otherwise=changed)
    check = mask_pictures.causality_check(scene, changed)
    what = say(
        "Token {n} reads “{piece}” in the first run and “{other}” in the second.",
        n=changed + 1,
        piece=pieces[changed],
        other=scene.run.checkpoint.tgt_tokenizer.piece(mask_pictures.other_piece(scene, changed)),
    )
    if _opens_later(scene):
        st.info(drawing.with_code(mask_texts.without_causal_mask(check.moved, changed)), icon=":material/science:")
    if scene.run.trace.query.interventions:
        st.caption(mask_texts.CHECKS_UNCHANGED)
    _say(check.held, joined(" ", [what, check.verdict]))
    show(mask_pictures.causality, scene)
    return check


def _padding(scene: MasksScene) -> mask_pictures.Check | None:
    st.subheader(say("Padding: add pads, and every row must stay the same"), divider=False)
    config, most = scene.run.checkpoint.config, mask_pictures.most_pads(scene)
    if config.pad_id is None:
        st.info(say("This model has no padding token, so there is nothing to check."), icon=":material/info:")
        return None
    if most < 1:
        st.info(mask_texts.no_pad_fits(scene.batch, config.max_len), icon=":material/info:")
        return None
    if most == 1:
        st.caption(say("There is room for only one pad."))
    else:
        controls.slider(controls.field(scene.slot, "pads"), say("Pads to add"), 1, most)
    found = mask_pictures.padding_checks(scene)
    pads = {"source": mask_pictures.source_pads, "target": mask_pictures.target_pads}
    for column, (side, check) in zip(st.columns(len(found), gap="medium"), found.items(), strict=True):
        with column:
            _say(check.held, check.verdict)
            show(pads[side], scene)
    return next(iter(found.values()))


def _say(held: bool, text: str) -> None:
    (st.success if held else st.error)(drawing.plain(text), icon=":material/rule:" if held else ":material/error:")
