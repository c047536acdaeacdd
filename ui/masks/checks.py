"""The checks of the Masks page: two runs each, and numbers that say whether the masks do what they are for."""

from __future__ import annotations

import streamlit as st

import charts
from charts.mask_rows import HOW_TO_READ_MOVEMENT
from transformer.analysis.mask_checks import Movement, PaddingMovement, check_causality, check_padding
from ui.masks import words
from ui.masks.batch import Batch, change_for
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.shared import choices, drawing

CAUSALITY = "mask_causality"
SOURCE_PADS = "mask_source_pads"
TARGET_PADS = "mask_target_pads"
CHANGED = "mask_changed"
MOST_PADS = 16


def draw(run: OpenRun, batch: Batch) -> None:
    """Run both checks on the sentence that is looked at and draw what they found."""
    found = attempt(lambda: [_causality(run, batch), _padding(run, batch)])
    for moved in [moved for moved in found or () if moved is not None][:1]:
        st.caption(drawing.plain(words.about_rounding(moved)))


def _causality(run: OpenRun, batch: Batch) -> Movement | None:
    st.subheader("Causality: a later piece changes, earlier rows must not move", divider=False)
    place, n_rows = batch.sentence, batch.n_target(batch.sentence)
    if n_rows < 2:
        st.info("There is no later piece to change: the decoder reads only the start piece.", icon=":material/info:")
        return None
    pieces = batch.pieces("target", place)
    changed = choices.menu(
        choices.field(run.slot, "changed", key=CHANGED),
        "Position whose piece is changed",
        choices.labelled(pieces[:n_rows], first=1),
        otherwise=n_rows // 2,
    )
    config, tokenizer = run.checkpoint.config, run.checkpoint.tgt_tokenizer
    specials = (config.pad_id, config.unk_id, config.bos_id, config.eos_id, config.decoder_start_id)
    piece_id = change_for(batch.traces[place], changed, specials=specials)
    moved: Movement = loading.runner().compute(
        ("causality", run.checkpoint.content_hash, batch.src_ids, batch.tgt_ids, place, changed, piece_id),
        lambda: check_causality(
            run.checkpoint.model, batch.src_ids, batch.tgt_ids, sentence=place, place=changed, piece_id=piece_id
        ),
        nbytes=_nbytes,
    )
    held, said = words.causality_verdict(moved, place=changed, n_rows=n_rows, n_sentences=len(batch.traces))
    what = (
        f"Position {changed + 1} reads “{pieces[changed]}”; the second run reads “{tokenizer.piece(piece_id)}” there."
    )
    _say(held, f"{what} {said}")
    figure = charts.logit_movement_spec(
        {"with the causal mask": moved.kept[:n_rows], "without it": moved.taken[:n_rows]},
        rows=batch.decoder_rows(place)[:n_rows],
        title=f"Change at position {changed + 1} of sentence {place + 1}: how far each row's logits move",
        rounding=moved.rounding,
        changed=changed,
    )
    drawing.chart(figure, key=run.key(CAUSALITY), alt=said, how_to_read=HOW_TO_READ_MOVEMENT)
    return moved


def _padding(run: OpenRun, batch: Batch) -> Movement | None:
    st.subheader("Padding: pads are added, no row may move", divider=False)
    place, config = batch.sentence, run.checkpoint.config
    src = batch.src_ids[place][: batch.n_source(place)]
    tgt = batch.tgt_ids[place][: batch.n_target(place)]
    most = min(MOST_PADS, config.max_len - max(len(src), len(tgt)))
    if most < 1:
        st.info(
            f"No pad fits: the model reads at most {config.max_len} pieces, and this sentence has them. "
            "Choose a shorter one.",
            icon=":material/info:",
        )
        return None
    n_pads = _how_many(run, most)
    moved: PaddingMovement = loading.runner().compute(
        ("padding", run.checkpoint.content_hash, src, tgt, n_pads),
        lambda: check_padding(run.checkpoint.model, src, tgt, n_pads=n_pads),
        nbytes=lambda found: _nbytes(found.source) + _nbytes(found.target),
    )
    rows = batch.decoder_rows(place)[: len(tgt)]
    columns = st.columns(2, gap="medium")
    for column, side, key, found in (
        (columns[0], "source", SOURCE_PADS, moved.source),
        (columns[1], "target", TARGET_PADS, moved.target),
    ):
        with column:
            held, said = words.padding_verdict(found, side=side, n_pads=n_pads)
            _say(held, said)
            figure = charts.logit_movement_spec(
                {f"with the {side} padding mask": found.kept, "without it": found.taken},
                rows=rows,
                title=f"{n_pads} pad{'s' * (n_pads > 1)} after the {side}: how far each row's logits move",
                rounding=found.rounding,
            )
            drawing.chart(figure, key=run.key(key), alt=said, how_to_read=HOW_TO_READ_MOVEMENT)
    return moved.source


def _how_many(run: OpenRun, most: int) -> int:
    if most == 1:
        st.caption("There is room for one pad.")
        return 1
    return choices.slider(choices.field(run.slot, "pads"), "Pads to add", 1, most)


def _say(held: bool, text: str) -> None:
    (st.success if held else st.error)(drawing.plain(text), icon=":material/rule:" if held else ":material/error:")


def _nbytes(moved: Movement) -> int:
    return moved.kept.nbytes + moved.taken.nbytes
