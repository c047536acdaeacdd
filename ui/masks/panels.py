"""What the Masks page shows: the masks of a padded batch, and one row before and after its mask."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

import charts
from charts.mask_rows import HOW_TO_READ_ROW
from charts.masks import (
    HOW_TO_READ_ADDITIVE,
    HOW_TO_READ_BATCH,
    HOW_TO_READ_BLOCKS,
    HOW_TO_READ_BOOL,
    HOW_TO_READ_OWN,
    POSITION,
)
from transformer.analysis.mask_checks import BatchMasks, additive, batch_masks, record_attention
from ui.components.plotly.view import Click
from ui.masks import checks, controls, words
from ui.masks.batch import KINDS, Axes, Batch, axes, closed_for
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing
from ui.shared.clicks import cell_of, place_below
from ui.shared.door import frame, st
from ui.state.view import MaskName
from words import say

BATCH = "mask_batch"
OWN = "mask_own"
AS_BOOL = "mask_bool"
AS_ADDITIVE = "mask_additive"
ROW = "mask_row"
IN_NUMBERS = say("The same mask in numbers: 0 and −∞")
MOST_BESIDE = 20  # keys of a map that has another beside it


@dataclass(frozen=True)
class _Row:
    """One query of one head, each [key]: before the mask, the mask, after mask and softmax, and why it is closed."""

    scores: np.ndarray
    allowed: np.ndarray
    weights: np.ndarray
    reasons: list[str]


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
    if section == "checks":
        checks.draw(run, batch)
        return
    with row:
        which = controls.which_attention if section == "one_row" else controls.which_mask
        name = which(run.slot, masks.names)
        if section == "one_row":
            where = controls.layer_and_head(run, batch.parts.attention(KINDS[name]).n_layers)
    controls.say_missing(run.slot, name, masks.names)
    special = words.about_special(run.checkpoint.config, name, section)
    if special:
        st.info(drawing.plain(special))
    if section == "one_row":
        _one_row(run, batch, masks, name, where)
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
    st.markdown(drawing.plain(words.about_mask(name, masks, n_heads=run.checkpoint.config.n_heads)))
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


def _one_row(run: OpenRun, batch: Batch, masks: BatchMasks, name: MaskName, where: tuple[int, int]) -> None:
    found, place = axes(batch, name), batch.sentence
    kind = KINDS[name]
    layer, head = where
    cell = controls.cell(run, name, masks, found, batch)
    recorded = attempt(
        lambda: loading.runner().compute(
            ("mask_scores", run.checkpoint.content_hash, batch.src_ids, batch.tgt_ids, kind, layer),
            lambda: record_attention(run.checkpoint.model, batch.src_ids, batch.tgt_ids, kind=kind, layer=layer),
            nbytes=lambda result: result.nbytes,
        )
    )
    if recorded is None:
        return
    reasons = closed_for(name, masks, place)
    why = [next((one for one, where in reasons.items() if where[cell[0], k]), "") for k in range(len(found.keys))]
    scores, allowed, weights = (
        values[place, head, cell[0]] for values in (recorded.scores, recorded.mask, recorded.weights)
    )
    row = _Row(scores, allowed, weights, why)
    _row_chart(run, found, cell, where, row)
    st.markdown(drawing.plain(words.about_cell(scores, allowed, weights, cell)))
    if run.view.layer is None or run.view.head is None:
        st.caption(say("A mean of heads has no scores of its own, so one head is shown."))
    with st.expander(say("The numbers of this row")):
        st.dataframe(_numbers(row, found.keys), hide_index=True)


def _row_chart(run: OpenRun, found: Axes, cell: tuple[int, int], where: tuple[int, int], row: _Row) -> None:
    (query, key), (layer, head) = cell, where
    title = say(
        "Layer {layer}, head {head}: query {n}, {query}",
        layer=layer + 1,
        head=head + 1,
        n=query + 1,
        query=found.queries[query],
    )
    figure = charts.masked_row_spec(
        row.scores,
        row.allowed,
        row.weights,
        keys=found.keys,
        title=title,
        key_axis=found.names[1],
        key=key,
        colour=found.key_side,
        mask_reasons=row.reasons,
    )
    drawing.chart(
        figure,
        key=run.key(ROW),
        alt=say(
            "Scores of query {n}, {query}, with {keys} keys, the same after the mask, and the weights; {closed} keys "
            "are closed.",
            n=query + 1,
            query=found.queries[query],
            keys=len(found.keys),
            closed=int((~row.allowed).sum()),
        ),
        how_to_read=HOW_TO_READ_ROW,
        fit=True,
        on_click=controls.follow_click(run, ROW, partial(_key_in, query=query, n_keys=len(found.keys))),
    )


def _key_in(click: Click, query: int, n_keys: int) -> tuple[int, int] | None:
    key = place_below(n_keys)(click)
    return None if key is None else (query, key)


def _numbers(row: _Row, keys: list[str]) -> pd.DataFrame:
    cells = list(zip(row.scores, row.allowed, row.weights, row.reasons, strict=True))
    return frame(
        {
            say("Key"): [f"{place + 1}: {piece}" for place, piece in enumerate(keys)],
            say("Score"): [f"{score:.6f}" for score in row.scores],
            say("May attend"): [
                say("True") if may else say("False: {reason}", reason=why) for _, may, _, why in cells
            ],
            say("Added"): ["0" if value == 0 else "−∞" for value in additive(row.allowed)],
            say("After the mask"): [f"{score:.6f}" if may else "−∞" for score, may, _, _ in cells],
            say("Weight"): [f"{weight:.6f}" if may else say("closed") for _, may, weight, _ in cells],
        }
    )
