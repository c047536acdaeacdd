"""What the Masks page shows: the masks of a padded batch, and one row before and after its mask."""

from __future__ import annotations

from functools import partial

import charts
from charts.masks import (
    HOW_TO_READ_ADDITIVE,
    HOW_TO_READ_BATCH,
    HOW_TO_READ_BLOCKS,
    HOW_TO_READ_BOOL,
    HOW_TO_READ_OWN,
    POSITION,
)
from transformer.analysis.mask_checks import BatchMasks, batch_masks
from ui.components.plotly.view import Click
from ui.masks import checks, controls, one_row, words
from ui.masks.batch import KINDS, Axes, Batch, axes, closed_for
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import cell_of
from ui.shared.door import st
from ui.state.view import MaskName
from words import say

BATCH = "mask_batch"
OWN = "mask_own"
AS_BOOL = "mask_bool"
AS_ADDITIVE = "mask_additive"
IN_NUMBERS = say("The same mask in numbers: 0 and −∞")
MOST_BESIDE = 20  # keys of a map that has another beside it


def draw(run: OpenRun) -> None:
    """Draw the chosen section of the page."""
    row = choices.bar(run.slot)
    with row:
        section = controls.sections(run.slot)
    batch = controls.choose_batch(run, row)
    if batch is None:
        return
    if run.view.guess and batch.parts.writes:
        st.info(words.GUESSING, icon=":material/visibility_off:")
    masks = batch_masks(run.checkpoint.model, batch.src_ids, batch.tgt_ids)
    if section != "one_row" and run.trace.query.interventions:
        st.info(words.UNCHANGED, icon=":material/info:")
    if section == "checks":
        checks.draw(run, batch)
        return
    with row:
        which = controls.which_attention if section == "one_row" else controls.which_mask
        name = which(run.slot, masks.names)
        if section == "one_row":
            attention = batch.parts.attention(KINDS[name])
            n_heads = run.checkpoint.config.of(attention.stack).n_heads
            where = controls.layer_and_head(run, attention.n_layers, n_heads)
    controls.say_missing(run.slot, name, masks.names)
    special = words.about_special(run.checkpoint.config, name, section)
    if special:
        st.info(drawing.plain(special))
    if section == "one_row":
        one_row.draw(run, batch, masks, name, where)
    else:
        _masks(run, batch, masks, name)


def _masks(run: OpenRun, batch: Batch, masks: BatchMasks, name: MaskName) -> None:
    found = axes(batch, name)
    cell = controls.cell(run, name, masks, found, batch)
    if len(found.keys) <= MOST_BESIDE:
        left, right = st.columns(2, gap="medium")
    else:  # a long sentence's pieces are read only on the whole width, and its cells have no room for signs
        left, right = st.container(), st.expander(IN_NUMBERS)
    with left:
        _mask_chart(run, name, masks, found, batch, cell, as_bool=True)
    with right:
        _mask_chart(run, name, masks, found, batch, cell, as_bool=False)
    own = run.checkpoint.config.of(batch.parts.attention(KINDS[name]).stack)
    st.markdown(drawing.plain(words.about_mask(name, masks, n_heads=own.n_heads)))
    st.caption(drawing.plain(words.about_batch(batch)))
    drawing.beside(
        lambda: _batch_chart(run, batch, found), lambda: _own_chart(run, name, masks, batch, found), gap="medium"
    )
    _conventions(batch, masks)


def _conventions(batch: Batch, masks: BatchMasks) -> None:
    st.subheader(say("Two conventions"), divider=False)
    st.code(words.CONVERSION, language="python")
    st.warning(words.TORCH, icon=":material/warning:")
    cells, different = _differences(batch, masks)
    if cells:
        st.caption(drawing.plain(words.agreement(cells, different)))
    if batch.parts.writes:
        st.caption(drawing.plain(words.without_mask(batch)))
    with st.expander(say("Mistakes that are easily made")):
        st.markdown(words.MISTAKES)


def _mask_chart(
    run: OpenRun,
    name: MaskName,
    masks: BatchMasks,
    found: Axes,
    batch: Batch,
    cell: tuple[int, int],
    *,
    as_bool: bool,
) -> None:
    place, title = batch.sentence, controls.MASKS[name]
    whole = masks.whole(name)[place]
    figure = charts.mask_map_spec(
        whole,
        reasons=closed_for(name, masks, place),
        queries=found.queries,
        keys=found.keys,
        title=say("{mask}, sentence {n}, bool", mask=title, n=place + 1)
        if as_bool
        else say("{mask}, sentence {n}, additive", mask=title, n=place + 1),
        axes=found.names,
        cell=cell,
        colour=found.key_side,
        convention="bool" if as_bool else "additive",
    )
    key = AS_BOOL if as_bool else AS_ADDITIVE
    drawing.chart(
        figure,
        key=run.key(key),
        alt=say(
            "{mask} mask of sentence {n} after broadcasting, written as {written}: {open} of {all} cells are open.",
            mask=title,
            n=place + 1,
            written=say("True and False") if as_bool else say("0 and minus infinity"),
            open=int(whole.sum()),
            all=whole.size,
        ),
        how_to_read=HOW_TO_READ_BOOL if as_bool else HOW_TO_READ_ADDITIVE,
        fit=True,
        on_click=controls.follow_click(run, key, partial(_cell_in, shape=whole.shape)),
    )


def _cell_in(click: Click, shape: tuple[int, ...]) -> tuple[int, int] | None:
    cell = cell_of(click)
    return cell if cell is not None and cell[0] < shape[0] and cell[1] < shape[1] else None


def _batch_chart(run: OpenRun, batch: Batch, found: Axes) -> None:
    side = found.key_side
    real = batch.is_real(side)
    n_sentences, n_positions = real.shape
    figure = charts.padded_batch_spec(
        [batch.pieces(side, i) for i in range(n_sentences)],
        real,
        sentences=_named(n_sentences),
        columns=[str(i + 1) for i in range(n_positions)],
        title=say("The batch: source ids {shape}", shape=list(real.shape))
        if side == "source"
        else say("The batch: target ids {shape}", shape=list(real.shape)),
        column_axis=POSITION,
        marked_row=batch.sentence,
        colour=side,
    )
    drawing.chart(
        figure,
        key=run.key(BATCH),
        alt=say(
            "{n} sentences of {lengths} pieces in {positions} positions; {padding} positions are padding.",
            n=n_sentences,
            lengths=", ".join(str(int(row.sum())) for row in real),
            positions=n_positions,
            padding=int((~real).sum()),
        ),
        how_to_read=HOW_TO_READ_BATCH,
    )


def _named(n_sentences: int) -> list[str]:
    return [say("Sentence {n}", n=place + 1) for place in range(n_sentences)]


def _own_chart(run: OpenRun, name: MaskName, masks: BatchMasks, batch: Batch, found: Axes) -> None:
    own = masks.own(name)
    figure = charts.mask_own_shape_spec(
        own,
        title=say("{mask} at its own shape {shape}", mask=controls.MASKS[name], shape=list(own.shape)),
        sentences=_named(len(batch.traces)),
        colour=found.key_side,
    )
    drawing.chart(
        figure,
        key=run.key(OWN),
        alt=say(
            "{mask} mask before broadcasting, shape {shape}: {closed} of {all} entries are False.",
            mask=controls.MASKS[name],
            shape=list(own.shape),
            closed=int((~own).sum()),
            all=own.size,
        ),
        how_to_read=HOW_TO_READ_BLOCKS if own.shape[0] > 1 < own.shape[2] else HOW_TO_READ_OWN,
    )


def _differences(batch: Batch, masks: BatchMasks) -> tuple[int, int]:
    """How many cells the run recorded for its attentions, and how many of them these masks have otherwise."""
    cells = different = 0
    for name in (name for name in controls.ATTENTIONS if name in masks.names):
        whole = masks.whole(name)
        for place, trace in enumerate(batch.traces):
            if trace.masks[KINDS[name]].ndim == 3:
                continue  # layers have windows besides
            recorded = trace.mask(KINDS[name])[: whole.shape[1], : whole.shape[2]]
            cells += recorded.size
            different += int((recorded != whole[place]).sum())
    return cells, different
