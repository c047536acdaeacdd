"""A run as the stepper in the browser wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glassformer.components.stepper_view import SourceChip, StepperRun, TargetChip
from glassformer.runs.step_rows import Looking, is_yours
from transformer.i18n import say, say_n
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def stepper_run(looking: Looking, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """The run as the stepper component wants it."""
    trace = looking.trace
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    unknown = checkpoint.config.unk_id
    own = np.exp(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)])
    return StepperRun(
        run_id=run_id,
        source=tuple(
            SourceChip(piece, i, special=source.is_special(i) and i != unknown, unknown=i == unknown)
            for piece, i in zip(trace.src_pieces, trace.src_ids, strict=True)
        ),
        target=tuple(
            TargetChip(piece, i, float(own[t]), forced=is_yours(trace, t), special=target.is_special(i))
            for t, (piece, i) in enumerate(zip(trace.tgt_pieces, trace.tgt_ids, strict=True))
        ),
        start_piece=trace.row_label(trace.first_row).reads if trace.n_steps else "",
        texts=trace.texts,
        shading=_shading(looking),
        shading_label=_shading_label(looking),
        stop_reason=_stop_sentence(trace),
        cut=trace.stop_reason == "length limit",
    )


def _shading(looking: Looking) -> np.ndarray | None:
    """How much each step looks at each source piece [step, source]; a decoder alone also looks at what it wrote."""
    trace = looking.trace
    if not trace.n_steps:
        return None
    steps = slice(trace.first_row, trace.first_row + trace.n_steps)
    return looking.weights()[steps, : len(trace.src_pieces)].copy()  # a session keeps it: no view of all maps


def _shading_label(looking: Looking) -> str:
    if not looking.trace.n_steps:
        return ""
    if looking.kind == "cross":
        return say("Source shaded by cross-attention, {whose}", whose=looking.whose())
    return say("Prompt shaded by self-attention, {whose}", whose=looking.whose())


def _stop_sentence(trace: Trace) -> str:
    if trace.stop_reason == "end of sentence":
        return say("The model ended the sentence.")
    if trace.stop_reason == "no decoder":
        return say("This is an encoder-only model: it reads text but does not write any.")
    return say_n(
        "The output was cut off at the limit of {n} piece.",
        "The output was cut off at the limit of {n} pieces.",
        trace.n_steps,
    )
