"""A run as the stepper component draws it: its tokens, how surely each was chosen, and what each looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glassformer.components.stepper_view import SourceChip, StepperRun, TargetChip
from glassformer.runs.viewed_run import VisibleTrace, is_yours
from glassformer.shared.i18n import st
from transformer.i18n import say, say_n
from transformer.runs.trace import Trace

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def stepper_run(visible: VisibleTrace, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """The run as the stepper component wants it."""
    trace = visible.trace
    source, target = checkpoint.src_tokenizer, checkpoint.tgt_tokenizer
    unknown = checkpoint.config.unk_id
    own = np.exp(trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)])
    return StepperRun(
        run_id=run_id,
        source=tuple(
            SourceChip(piece, i, special=source.is_special(i) and i != unknown, unknown=i == unknown)
            for piece, i in zip(trace.src_tokens, trace.src_ids, strict=True)
        ),
        target=tuple(
            TargetChip(piece, i, float(own[t]), forced=is_yours(trace, t), special=target.is_special(i))
            for t, (piece, i) in enumerate(zip(trace.tgt_tokens, trace.tgt_ids, strict=True))
        ),
        start_piece=trace.row_label(trace.first_row).reads if trace.n_steps else "",
        texts=trace.texts,
        shading=_shading(visible),
        shading_label=_shading_label(visible),
        stop_reason=_stop_sentence(trace),
        cut=trace.stop_reason == "length limit",
    )


def _shading(visible: VisibleTrace) -> np.ndarray | None:
    """How much each step looks at each source piece [step, source]; of a decoder-only model, also at its own output."""
    trace = visible.trace
    if not trace.n_steps:
        return None
    steps = slice(trace.first_row, trace.first_row + trace.n_steps)
    return visible.weights()[steps, : len(trace.src_tokens)].copy()  # a session keeps it: no view of all maps


def _shading_label(visible: VisibleTrace) -> str:
    if not visible.trace.n_steps:
        return ""
    if visible.kind == "cross":
        return say("Source shaded by cross-attention, {whose}", whose=visible.whose())
    return say("Prompt shaded by self-attention, {whose}", whose=visible.whose())


def _stop_sentence(trace: Trace) -> str:
    if trace.stop_reason == "end of sentence":
        return say("The model ended the sentence.")
    if trace.stop_reason == "no decoder":
        return say("This is an encoder-only model: it reads text but does not write any.")
    return say_n(
        "The output was cut off at the limit of {n} token.",
        "The output was cut off at the limit of {n} tokens.",
        trace.n_steps,
    )


STEPPER_RUN = "stepper_run"


def _stepper_run(visible: VisibleTrace, checkpoint: Checkpoint, run_id: str) -> StepperRun:
    """What the stepper holds; a step changes nothing of it, so it is kept from step to step."""
    which, key = (run_id, visible.view.layer, visible.view.head), f"{visible.slot}{STEPPER_RUN}"
    kept: tuple[object, StepperRun] | None = st.session_state.get(key)
    if kept is None or kept[0] != which:
        kept = (which, stepper_run(visible, checkpoint, run_id))
        st.session_state[key] = kept
    return kept[1]
