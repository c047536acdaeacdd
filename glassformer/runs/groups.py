"""Which heads share keys and values, where a prompt ends, why cells are closed: what maps are marked with.

Knows nothing of Streamlit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glassformer.charts.tables import CLOSED
from glassformer.runs.seen import Drawn, Seen
from transformer.i18n import Sentence, say
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.checkpoint.load import Checkpoint


def group_size(config: ModelConfig | None) -> int:
    """How many heads share one head of keys and values; 1 where each has its own, or nothing is known of them."""
    return 1 if config is None else config.n_heads // config.n_kv_heads


def size_of(run: Drawn) -> int:
    """The same of a run; of given maps nothing is known."""
    return group_size(None if run.checkpoint is None else run.checkpoint.config)


def shared_by(head: int, config: ModelConfig | None) -> str:
    """With which heads a head shares keys and values, in a few words; "" if with none."""
    size = group_size(config)
    if size == 1 or config is None:
        return ""
    group = head // size
    if config.n_kv_heads == 1:
        return say("all {n_heads} heads share one key-value head", n_heads=config.n_heads)
    return say("heads {first} to {last} share key-value head {group} of {n}", n=config.n_kv_heads, group=group + 1,
               first=group * size + 1, last=(group + 1) * size)  # fmt: skip


def own_masks(run: Drawn, kind: Kind) -> np.ndarray:
    """The mask of an attention, bool [query, key], or [layer, query, key] where layers have masks of their own."""
    return run.trace.masks[kind] if isinstance(run, Seen) else run.looking.trace.mask(kind)


def prompt_row(run: Drawn, kind: Kind) -> int | None:
    """The row that predicts the output's first piece, where queries and keys are a prompt and what follows it."""
    if not isinstance(run, Seen) or kind != "decoder" or "encoder" in run.trace.kinds or not run.trace.n_steps:
        return None
    return run.trace.first_row


def mask_reason(checkpoint: Checkpoint | None, kind: Kind) -> Sentence:
    """Why the mask closes cells of an attention; of given maps only that it does is known."""
    if checkpoint is None:
        return CLOSED
    parts = anatomy(checkpoint.config)
    if not parts.attention(kind).causal:
        return say("closed by the mask: the key is padding")
    if any(checkpoint.config.windows):
        return say("closed by the mask: the key comes later, or before the layer's window")
    if parts.reads:
        return say("closed by the mask: the key comes later in the output")
    return say("closed by the mask: the key comes later in the text")
