"""What the Masks page shows: the masks of a padded batch, and one row before and after its mask."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

import charts
from charts.mask_rows import HOW_TO_READ_ROW
from charts.masks import (
    HOW_TO_READ_ADDITIVE,
    HOW_TO_READ_BATCH,
    HOW_TO_READ_BLOCKS,
    HOW_TO_READ_BOOL,
    HOW_TO_READ_OWN,
)
from transformer.analysis.mask_checks import BatchMasks, additive, batch_masks, record_attention
from ui.components.plotly.view import Click
from ui.masks import checks, controls, words
from ui.masks.batch import KINDS, Axes, Batch, axes, closed_for, verdict
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import drawing
from ui.shared.clicks import cell_of, place_below
from ui.state.view import MaskName

BATCH = "mask_batch"
OWN = "mask_own"
AS_BOOL = "mask_bool"
AS_ADDITIVE = "mask_additive"
ROW = "mask_row"
IN_NUMBERS = "The same mask in numbers: 0 and −∞"
MOST_BESIDE = 20  # keys of a map that has another beside it


def draw(run: OpenRun) -> None:
    """Draw the chosen section of the page."""
    batch = controls.choose_batch(run)
    if batch is None:
        return
    if len(batch.traces) == 1:
        st.caption(drawing.plain(words.about_batch(batch)))
    if run.view.guess:
        st.info(words.GUESSING, icon=":material/visibility_off:")
    masks = batch_masks(run.checkpoint.model, batch.src_ids, batch.tgt_ids)
    left, right = st.columns([1, 2], gap="small")
    with left:
        section = controls.sections(run.slot)
    if section == "checks":
        checks.draw(run, batch)
        return
    with right:
        one_row = section == "one_row"
        name = controls.which_attention(run.slot) if one_row else controls.which_mask(run.slot)
    (_one_row if one_row else _masks)(run, batch, masks, name)


def _masks(run: OpenRun, batch: Batch, masks: BatchMasks, name: MaskName) -> None:
    found = axes(batch, name)
    cell = controls.cell(run.slot, found, masks.whole(name)[batch.sentence])
    _say_verdict(run, name, masks, found, batch, cell)
    if len(found.keys) <= MOST_BESIDE:
        left, right = st.columns(2, gap="medium")
    else:  # a long sentence's pieces are read only on the whole width, and its cells have no room for signs
        left, right = st.container(), st.expander(IN_NUMBERS)
    with left:
        _mask_chart(run, name, masks, found, batch, cell, as_bool=True)
    with right:
        _mask_chart(run, name, masks, found, batch, cell, as_bool=False)
    st.markdown(drawing.plain(words.about_mask(name, masks, n_heads=run.checkpoint.config.n_heads)))
    if len(batch.traces) > 1:
        st.caption(drawing.plain(words.about_batch(batch)))
    left, right = st.columns(2, gap="medium")
    with left:
        _batch_chart(run, batch, found)
    with right:
        _own_chart(run, name, masks, batch, found)
    st.subheader("Two conventions", divider=False)
    st.code(words.CONVERSION, language="python")
    st.warning(words.TORCH, icon=":material/warning:")
    st.caption(drawing.plain(words.agreement(*_differences(batch, masks))))
    st.caption(drawing.plain(words.without_mask(batch)))
    with st.expander("Mistakes that are easily made"):
        st.markdown(words.MISTAKES)


def _say_verdict(
    run: OpenRun, name: MaskName, masks: BatchMasks, found: Axes, batch: Batch, cell: tuple[int, int]
) -> None:
    allowed, why = verdict(name, masks, found, sentence=batch.sentence, cell=cell)
    asked = f"May “{found.queries[cell[0]]}” see “{found.keys[cell[1]]}”?"
    icon = ":material/check_circle:" if allowed else ":material/block:"
    with st.container(key=run.key("mask_verdict")):
        st.markdown(f"{icon} **{drawing.plain(asked)}** {drawing.plain(why[:1].upper() + why[1:])}")


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
    place, title = batch.sentence, controls.TITLES[name]
    whole = masks.whole(name)[place]
    figure = charts.mask_map_spec(
        whole,
        reasons=closed_for(name, masks, place),
        queries=found.queries,
        keys=found.keys,
        title=f"{title}, sentence {place + 1}, {'bool' if as_bool else 'additive'}",
        axes=found.names,
        cell=cell,
        colour=found.key_side,
        convention="bool" if as_bool else "additive",
    )
    key = AS_BOOL if as_bool else AS_ADDITIVE
    written = "True and False" if as_bool else "0 and minus infinity"
    drawing.chart(
        figure,
        key=run.key(key),
        alt=f"{title} mask of sentence {place + 1} after broadcasting, written as {written}: {int(whole.sum())} of "
        f"{whole.size} cells are open.",
        how_to_read=HOW_TO_READ_BOOL if as_bool else HOW_TO_READ_ADDITIVE,
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
        sentences=[f"Sentence {i + 1}" for i in range(n_sentences)],
        columns=[str(i + 1) for i in range(n_positions)],
        title=f"The batch: {'source' if side == 'source' else 'target'} ids [{n_sentences}, {n_positions}]",
        column_axis="Position",
        marked_row=batch.sentence,
        colour=side,
    )
    drawing.chart(
        figure,
        key=run.key(BATCH),
        alt=f"{n_sentences} sentences of {', '.join(str(int(row.sum())) for row in real)} pieces in {n_positions} "
        f"positions; {int((~real).sum())} positions are padding.",
        how_to_read=HOW_TO_READ_BATCH,
    )


def _own_chart(run: OpenRun, name: MaskName, masks: BatchMasks, batch: Batch, found: Axes) -> None:
    own = masks.own(name)
    figure = charts.mask_own_shape_spec(
        own,
        title=f"{controls.TITLES[name]} at its own shape {list(own.shape)}",
        sentences=[f"Sentence {i + 1}" for i in range(len(batch.traces))],
        colour=found.key_side,
    )
    drawing.chart(
        figure,
        key=run.key(OWN),
        alt=f"The {controls.TITLES[name].lower()} mask before broadcasting, shape {list(own.shape)}: "
        f"{int((~own).sum())} of {own.size} entries are False.",
        how_to_read=HOW_TO_READ_BLOCKS if own.shape[0] > 1 < own.shape[2] else HOW_TO_READ_OWN,
    )


def _differences(batch: Batch, masks: BatchMasks) -> tuple[int, int]:
    """How many cells the run recorded for its three attentions, and how many of them these masks have otherwise."""
    cells = different = 0
    names: tuple[MaskName, ...] = ("source", "decoder", "cross")
    for name in names:
        whole = masks.whole(name)
        for place, trace in enumerate(batch.traces):
            recorded = trace.mask(KINDS[name])[: whole.shape[1], : whole.shape[2]]
            cells += recorded.size
            different += int((recorded != whole[place]).sum())
    return cells, different


def _one_row(run: OpenRun, batch: Batch, masks: BatchMasks, name: MaskName) -> None:
    found, place = axes(batch, name), batch.sentence
    config, kind = run.checkpoint.config, KINDS[name]
    n_layers = config.n_encoder_layers if kind == "encoder" else config.n_decoder_layers
    layer, head = controls.layer_and_head(run, n_layers)
    cell = controls.cell(run.slot, found, masks.whole(name)[place])
    _say_verdict(run, name, masks, found, batch, cell)
    recorded = attempt(
        lambda: loading.runner().compute(
            ("mask scores", run.checkpoint.content_hash, batch.src_ids, batch.tgt_ids, kind, layer),
            lambda: record_attention(run.checkpoint.model, batch.src_ids, batch.tgt_ids, kind=kind, layer=layer),
            nbytes=lambda result: result.nbytes,
        )
    )
    if recorded is None:
        return
    query, key = cell
    scores, allowed, weights = (
        values[place, head, query] for values in (recorded.scores, recorded.mask, recorded.weights)
    )
    reasons = closed_for(name, masks, place)
    why = [next((reason for reason, where in reasons.items() if where[query, k]), "") for k in range(len(found.keys))]
    figure = charts.masked_row_spec(
        scores,
        allowed,
        weights,
        keys=found.keys,
        title=f"Layer {layer + 1}, head {head + 1}: query {query + 1}, {found.queries[query]}",
        key_axis=found.names[1],
        key=key,
        colour=found.key_side,
        mask_reasons=why,
    )
    drawing.chart(
        figure,
        key=run.key(ROW),
        alt=f"Scores of query {query + 1}, {found.queries[query]}, with {len(found.keys)} keys, the same after the "
        f"mask, and the weights; {int((~allowed).sum())} keys are closed.",
        how_to_read=HOW_TO_READ_ROW,
        on_click=controls.follow_click(run, ROW, partial(_key_in, query=query, n_keys=len(found.keys))),
    )
    st.markdown(drawing.plain(words.about_cell(scores, allowed, weights, cell)))
    with st.expander("The numbers of this row"):
        st.dataframe(_numbers(scores, allowed, weights, found.keys, why), hide_index=True)


def _key_in(click: Click, query: int, n_keys: int) -> tuple[int, int] | None:
    key = place_below(n_keys)(click)
    return None if key is None else (query, key)


def _numbers(
    scores: np.ndarray, allowed: np.ndarray, weights: np.ndarray, keys: list[str], why: list[str]
) -> pd.DataFrame:
    added = additive(allowed)
    return pd.DataFrame(
        {
            "Key": [f"{place + 1}: {piece}" for place, piece in enumerate(keys)],
            "Score": [f"{score:.6f}" for score in scores],
            "May attend": ["True" if may else f"False: {reason}" for may, reason in zip(allowed, why, strict=True)],
            "Added": ["0" if value == 0 else "−∞" for value in added],
            "After the mask": [f"{s:.6f}" if may else "−∞" for s, may in zip(scores, allowed, strict=True)],
            "Weight": [f"{w:.6f}" if may else "closed" for w, may in zip(weights, allowed, strict=True)],
        }
    )
