"""The checks of the Masks page: two runs each, and numbers that say whether the masks do what they are for."""

from __future__ import annotations

import charts
from charts.mask_rows import HOW_TO_READ_MOVEMENT, HOW_TO_READ_VECTORS, LOGITS, READS_PREDICTS, VECTORS
from transformer.analysis.another_piece import another_piece
from transformer.analysis.mask_checks import Movement, PaddingMovement, check_causality, check_padding
from ui.masks import verdicts
from ui.masks.batch import Batch
from ui.runs import loading
from ui.runs.attempt import attempt
from ui.runs.open_run import OpenRun
from ui.runs.sides import SOURCE_ROWS
from ui.shared import choices, drawing
from ui.shared.door import st
from words import joined, say

CAUSALITY = "mask_causality"
SOURCE_PADS = "mask_source_pads"
TARGET_PADS = "mask_target_pads"
CHANGED = "mask_changed"
MOST_PADS = 16


def draw(run: OpenRun, batch: Batch) -> None:
    """Run both checks on the sentence that is looked at and draw what they found."""
    found = attempt(lambda: [_causality(run, batch), _padding(run, batch)])
    for moved in [moved for moved in found or () if moved is not None][:1]:
        st.caption(drawing.plain(verdicts.about_rounding(moved, logits=batch.parts.writes)))


def _causality(run: OpenRun, batch: Batch) -> Movement | None:
    st.subheader(say("Causality: a later piece changes, earlier rows must not move"), divider=False)
    place, n_rows = batch.sentence, batch.n_target(batch.sentence)
    if n_rows < 2:
        st.info(verdicts.nothing_later(batch), icon=":material/info:")
        return None
    pieces = batch.pieces("target", place)
    changed = choices.menu(
        choices.field(run.slot, "changed", key=CHANGED),
        say("Token whose piece is changed"),
        choices.labelled(pieces[:n_rows], first=1),
        otherwise=n_rows // 2,
    )
    config, tokenizer = run.checkpoint.config, run.checkpoint.tgt_tokenizer
    piece_id = another_piece(batch.traces[place], changed, config=config)
    moved: Movement = loading.runner().compute(
        ("causality", run.checkpoint.content_hash, batch.src_ids, batch.tgt_ids, place, changed, piece_id),
        lambda: check_causality(
            run.checkpoint.model, batch.src_ids, batch.tgt_ids, sentence=place, place=changed, piece_id=piece_id
        ),
        nbytes=_nbytes,
    )
    held, said = verdicts.causality_verdict(moved, place=changed, n_rows=n_rows, n_sentences=len(batch.traces))
    what = say(
        "Token {n} reads “{piece}”; the second run reads “{other}” there.",
        n=changed + 1,
        piece=pieces[changed],
        other=tokenizer.piece(piece_id),
    )
    _say(held, joined(" ", [what, said]))
    figure = charts.logit_movement_spec(
        {say("with the causal mask"): moved.kept[:n_rows], say("without it"): moved.taken[:n_rows]},
        rows=batch.decoder_rows(place)[:n_rows],
        title=say(
            "Change at token {n} of sentence {sentence}: how far each row's logits move",
            n=changed + 1,
            sentence=place + 1,
        ),
        rounding=moved.rounding,
        changed=changed,
    )
    drawing.chart(figure, key=run.key(CAUSALITY), alt=said, how_to_read=HOW_TO_READ_MOVEMENT)
    return moved


def _padding(run: OpenRun, batch: Batch) -> Movement | None:
    st.subheader(say("Padding: pads are added, no row may move"), divider=False)
    place, config = batch.sentence, run.checkpoint.config
    if config.pad_id is None:
        st.info(say("This model has no padding piece, so there is nothing to check."), icon=":material/info:")
        return None
    src = batch.src_ids[place][: batch.n_source(place)]
    tgt = batch.tgt_ids[place][: batch.n_target(place)]
    most = min(MOST_PADS, config.max_len - max(len(src), len(tgt)))
    if most < 1:
        st.info(verdicts.no_pad_fits(batch, config.max_len), icon=":material/info:")
        return None
    n_pads = _how_many(run, most)
    moved: PaddingMovement = loading.runner().compute(
        ("padding", run.checkpoint.content_hash, src, tgt, n_pads),
        lambda: check_padding(run.checkpoint.model, src, tgt, n_pads=n_pads),
        nbytes=lambda found: sum(_nbytes(one) for one in (found.source, found.target) if one is not None),
    )
    found = {side: one for side, one in (("source", moved.source), ("target", moved.target)) if one is not None}
    for column, (side, one) in zip(st.columns(len(found), gap="medium"), found.items(), strict=True):
        with column:
            _padding_of(run, batch, side, one, n_pads)
    return next(iter(found.values()))


def _padding_of(run: OpenRun, batch: Batch, side: str, moved: Movement, n_pads: int) -> None:
    """Draw what pads on one side do: to logits, or to the vectors of an encoder alone."""
    place, logits, of_source = batch.sentence, batch.parts.writes, side == "source"
    n_rows = batch.n_target(place) if logits else batch.n_source(place)
    held, said = verdicts.padding_verdict(moved, of_source=of_source, n_pads=n_pads, logits=logits)
    _say(held, said)
    with_mask = say("with the source padding mask") if of_source else say("with the target padding mask")
    figure = charts.logit_movement_spec(
        {with_mask: moved.kept, say("without it"): moved.taken},
        rows=(batch.decoder_rows(place) if logits else batch.pieces("source", place))[:n_rows],
        title=verdicts.about_pads(of_source=of_source, n_pads=n_pads, logits=logits),
        rounding=moved.rounding,
        row_axis=READS_PREDICTS if logits else SOURCE_ROWS,
        value_name=LOGITS if logits else VECTORS,
    )
    how_to_read = HOW_TO_READ_MOVEMENT if logits else HOW_TO_READ_VECTORS
    key = run.key(SOURCE_PADS if of_source else TARGET_PADS)
    drawing.chart(figure, key=key, alt=said, how_to_read=how_to_read)


def _how_many(run: OpenRun, most: int) -> int:
    if most == 1:
        st.caption(say("There is room for one pad."))
        return 1
    return choices.slider(choices.field(run.slot, "pads"), say("Pads to add"), 1, most)


def _say(held: bool, text: str) -> None:
    (st.success if held else st.error)(drawing.plain(text), icon=":material/rule:" if held else ":material/error:")


def _nbytes(moved: Movement) -> int:
    return moved.kept.nbytes + moved.taken.nbytes
