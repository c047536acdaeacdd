"""The Masks page: its controls, its pictures, and what is said of them."""

from collections.abc import Callable, Mapping
from typing import Final

import pandas as pd

from glassformer.masks import mask_controls, mask_pictures, words
from glassformer.masks.scene import ATTENTIONS, KINDS, MASKS, Scene, scene_of
from glassformer.runs.attempt import attempt
from glassformer.runs.open_run import OpenRun
from glassformer.runs.picture import Picture
from glassformer.runs.show import choose_part, show, show_beside
from glassformer.shared import choices, drawing
from glassformer.shared.door import frame, st
from transformer.i18n import joined, say
from transformer.i18n.numbers import written

IN_NUMBERS = mask_pictures.as_additive.title
MOST_BESIDE = 20  # keys of a map that has another beside it


def draw(run: OpenRun) -> None:
    """Draw the chosen part of the page."""
    row = choices.bar(run.slot)
    with row:
        part = choose_part(MASKS, run.slot)
    batch = mask_controls.choose_batch(run, row)
    if batch is None:
        return
    if run.view.guess and batch.parts.writes:
        st.info(words.GUESSING, icon=":material/visibility_off:")
    if part != "one_row" and run.trace.query.interventions:
        st.info(words.UNCHANGED, icon=":material/info:")
    scene = scene_of(run, batch)
    if part != "checks":
        mask_controls.choose_mask(scene, row)
        special = words.about_special(run.checkpoint.config, scene.name, part)
        if special:
            st.info(drawing.plain(special))
    _DRAW[part](scene)


def _masks(scene: Scene) -> None:
    mask_controls.cell(scene)
    if len(scene.axes.keys) <= MOST_BESIDE:
        left, right = st.columns(2, gap="medium")
    else:  # a long sentence's pieces are read only on the whole width, and its cells have no room for signs
        left, right = st.container(), st.expander(IN_NUMBERS)
    with left:
        show(mask_pictures.as_bool, scene)
    with right:
        show(mask_pictures.as_additive, scene)
    own = scene.run.checkpoint.config.of(scene.batch.parts.attention(scene.kind).stack)
    st.markdown(drawing.plain(words.about_mask(scene.name, scene.masks, n_heads=own.n_heads)))
    st.caption(drawing.plain(words.about_batch(scene.batch)))
    show_beside(mask_pictures.batch, mask_pictures.own, scene, gap="medium")
    st.subheader(say("Two conventions"), divider=False)
    st.code(words.CONVERSION, language="python")
    st.warning(words.TORCH, icon=":material/warning:")
    cells, different = _differences(scene)
    if cells:
        st.caption(drawing.plain(words.agreement(cells, different)))
    if scene.batch.parts.writes:
        st.caption(drawing.plain(words.without_mask(scene.batch)))
    with st.expander(say("Common mistakes")):
        st.markdown(words.MISTAKES)


def _differences(scene: Scene) -> tuple[int, int]:
    """How many cells the run recorded for its attentions, and how many of them these masks have otherwise."""
    cells = different = 0
    for name in (name for name in ATTENTIONS if name in scene.masks.names):
        whole = scene.masks.whole(name)
        for place, trace in enumerate(scene.batch.traces):
            if trace.masks[KINDS[name]].ndim == 3:
                continue  # layers have windows besides
            recorded = trace.mask(KINDS[name])[: whole.shape[1], : whole.shape[2]]
            cells += recorded.size
            different += int((recorded != whole[place]).sum())
    return cells, different


def _one_row(scene: Scene) -> None:
    mask_controls.cell(scene)
    row = attempt(lambda: mask_pictures.row_of(scene))
    if row is None:
        return
    show(mask_pictures.one_row, scene)
    about = words.about_cell(row.scores, row.allowed, row.weights, scene.cell, filled=row.filled)
    st.markdown(drawing.plain(about))
    if scene.run.view.layer is None or scene.run.view.head is None:
        st.caption(say("A mean over heads has no scores of its own, so one head is shown instead."))
    with st.expander(say("The numbers of this row")):
        st.dataframe(_numbers(row, scene.axes.keys), hide_index=True)


def _numbers(row: mask_pictures.Row, keys: list[str]) -> pd.DataFrame:
    cells = list(zip(row.scores, row.allowed, row.weights, row.reasons, strict=True))
    return frame(
        {
            say("Key"): [f"{place + 1}: {piece}" for place, piece in enumerate(keys)],
            say("Score"): [written(f"{score:.6f}") for score in row.scores],
            say("May attend"): [
                say("True") if may else say("False: {reason}", reason=why) for _, may, _, why in cells
            ],
            say("Added"): ["0" if may else words.added(row.filled) for _, may, _, _ in cells],
            say("After the mask"): [written(f"{score:.6f}") if may else row.filled for score, may, _, _ in cells],
            say("Weight"): [f"{weight:.6f}" if may or weight else say("closed") for _, may, weight, _ in cells],
        }
    )


def _checks(scene: Scene) -> None:
    """Run both checks on the sentence that is looked at and draw what they found."""
    found = attempt(lambda: [_causality(scene), _padding(scene)])
    for check in [check for check in found or () if check is not None][:1]:
        st.caption(drawing.plain(words.about_rounding(check.moved, logits=scene.batch.parts.writes)))


def _causality(scene: Scene) -> mask_pictures.Check | None:
    st.subheader(say("Causality: change a later piece, and earlier rows must stay the same"), divider=False)
    changed, batch = mask_pictures.changed_token(scene), scene.batch
    if changed is None:
        st.info(words.nothing_later(batch), icon=":material/info:")
        return None
    pieces = batch.pieces("target", batch.sentence)
    choices.menu(
        choices.field(scene.slot, "changed", key="mask_changed"),
        say("Token to change"),
        choices.labelled(pieces[: batch.n_target(batch.sentence)], first=1),
        otherwise=changed,
    )
    check = mask_pictures.causality_check(scene, changed)
    what = say(
        "Token {n} reads “{piece}” in the first run and “{other}” in the second.",
        n=changed + 1,
        piece=pieces[changed],
        other=scene.run.checkpoint.tgt_tokenizer.piece(mask_pictures.other_piece(scene, changed)),
    )
    _say(check.held, joined(" ", [what, check.verdict]))
    show(mask_pictures.causality, scene)
    return check


def _padding(scene: Scene) -> mask_pictures.Check | None:
    st.subheader(say("Padding: add pads, and every row must stay the same"), divider=False)
    config, most = scene.run.checkpoint.config, mask_pictures.most_pads(scene)
    if config.pad_id is None:
        st.info(say("This model has no padding piece, so there is nothing to check."), icon=":material/info:")
        return None
    if most < 1:
        st.info(words.no_pad_fits(scene.batch, config.max_len), icon=":material/info:")
        return None
    if most == 1:
        st.caption(say("There is room for only one pad."))
    else:
        choices.slider(choices.field(scene.slot, "pads"), say("Pads to add"), 1, most)
    found = mask_pictures.padding_checks(scene)
    for column, (side, check) in zip(st.columns(len(found), gap="medium"), found.items(), strict=True):
        with column:
            _say(check.held, check.verdict)
            show(_PADS[side], scene)
    return next(iter(found.values()))


def _say(held: bool, text: str) -> None:
    (st.success if held else st.error)(drawing.plain(text), icon=":material/rule:" if held else ":material/error:")


_PADS: Final[Mapping[str, Picture[Scene]]] = {
    "source": mask_pictures.source_pads,
    "target": mask_pictures.target_pads,
}
_DRAW: Final[Mapping[str, Callable[[Scene], None]]] = {"masks": _masks, "one_row": _one_row, "checks": _checks}
