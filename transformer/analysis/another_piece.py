"""Which piece the causality check puts in the place of another: one that the model might have written there.

Knows nothing of what is drawn.
"""

from __future__ import annotations

import numpy as np

from transformer.model.config import ModelConfig
from transformer.runs.trace import Trace


def another_piece(trace: Trace, place: int, *, config: ModelConfig) -> int:
    """The id of the likeliest other ordinary piece at a place of what the decoder reads.

    Within a prompt nothing was predicted. It is the one that is least likely after the prompt, as the likeliest may
    be what a reader is to guess.

    Args:
        trace: The sentence's run.
        place: Which token that the decoder reads, from 1; the first, number 0, is the mark that all begins with.
    """
    step = place - 1 - trace.first_row
    log_probs = trace.log_probs[step].copy() if step >= 0 else -trace.log_probs[0]
    specials = (config.unk_id, config.bos_id, config.decoder_start_id, *config.end_ids, *config.never_written)
    log_probs[[trace.read_ids[place], *(i for i in specials if i is not None)]] = -np.inf
    return int(log_probs.argmax())
