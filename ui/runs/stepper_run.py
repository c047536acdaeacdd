"""A run as the stepper in the browser wants it."""

from __future__ import annotations

import numpy as np

from transformer.checkpoint.load import Checkpoint
from transformer.runs.trace import Trace
from ui.components.stepper.stepper import SourceChip, StepperRun, TargetChip
from ui.runs.looking import Looking, is_yours


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
        start_piece=trace.read_pieces[0],
        texts=trace.texts,
        shading=looking.cross_weights()[: trace.n_steps].copy(),  # a session keeps it: no view of all maps
        shading_label=f"cross-attention, {looking.cross_label()}",
        stop_reason=_stop_sentence(trace),
    )


def _stop_sentence(trace: Trace) -> str:
    if trace.stop_reason == "end of sentence":
        return "The model ended the sentence."
    return f"Cut at the limit of {trace.n_steps} pieces."
