"""Masked-token predictions (MLM) of a run, cached for all sessions, and the tokens that can be masked."""

from collections.abc import Sequence

from glassformer.runs.viewed_run import ViewedRun
from transformer.analysis.hidden_pieces import Hidden, hide, mask_id
from transformer.model.anatomy import anatomy
from transformer.runs.apply_interventions import tap_for


def gap_of(run: ViewedRun) -> int | None:
    """The piece that stands for a gap; None where there is none, or no head that says what fits."""
    return mask_id(run.checkpoint.src_tokenizer) if anatomy(run.checkpoint.config).fills else None


def text_of(run: ViewedRun) -> list[int]:
    """The tokens of the text itself: what the config puts around it is left out."""
    config, n = run.checkpoint.config, len(run.trace.src_ids)
    n_pads = run.trace.src_ids.count(config.pad_id)
    return list(range(len(config.source_start), n - len(config.source_end) - n_pads))


def hidden_place(run: ViewedRun) -> int:
    """The token that is hidden: the one that was chosen, else one in the middle of the text."""
    asked, n = run.view.get("hidden"), len(run.trace.src_ids)
    if asked is not None and asked < n:
        return asked
    text = text_of(run)
    return text[len(text) // 2] if text else n // 2


def hidden(run: ViewedRun, places: Sequence[int], gap: int, *, whole: bool = False) -> Hidden:
    """What the model says of pieces that are hidden one by one, once for all visitors; errors as of `ModelAccess`."""
    checkpoint, trace, where = run.checkpoint, run.trace, tuple(places)

    def work() -> Hidden:
        tap = tap_for(trace.query.interventions, checkpoint)  # a change may run another sentence for it
        return hide(checkpoint.model, trace.src_ids, where, gap, tap=tap, whole=whole)

    key = ("hidden", checkpoint.content_hash, trace.query.interventions, trace.src_ids, where, whole)
    return run.work.compute(key, work, nbytes=lambda found: found.nbytes)
