"""Choice of a draft (speculative decoding) for a run: setting, what suits, cache; none once few tokens were right.

A draft may be wrong anywhere: `transformer.runs.drafting` reads it once with the model and keeps only what the model
would have written. So the choice changes only the time of a run.

    GLASSFORMER_DRAFT=auto          the fastest there is, from the second run of a checkpoint on: making it takes time
    GLASSFORMER_DRAFT=ctranslate2   CTranslate2, if it is installed and can do what is asked; else int8
    GLASSFORMER_DRAFT=int8          the model with 8-bit matrices
    GLASSFORMER_DRAFT=none          every piece is written by the model itself, step by step

A model whose drafts are mostly wrong gets none any more. The log names each model's draft.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from glassformer.extensions.drafts import ctranslate2_draft, int8_draft
from transformer.model.transformer import Transformer
from transformer.runs.drafting import Draft
from transformer.runs.query import Runnable
from transformer.runs.reading import EncodedBatch

ENVIRONMENT = "GLASSFORMER_DRAFT"
CHOICES: dict[str, tuple[str, ...]] = {
    "auto": ("ctranslate2", "int8"), "ctranslate2": ("ctranslate2", "int8"), "int8": ("int8",), "none": (),
}  # fmt: skip
"""The drafts to try for each setting, in order."""
_SUITS = {"ctranslate2": ctranslate2_draft.suits, "int8": int8_draft.Int8.suits}
TRIED = 200  # pieces after which a model's drafts are judged
MOST_PARAMETERS = 2**28  # of a model that gets drafts: they take a byte for each, and four while they are made
WORTH = 0.6  # share of them that has to be right, or drafting costs more than it saves

_LOG = logging.getLogger("glassformer.drafts")


@dataclass
class _Known:
    """What is known of one model's drafts."""

    runs: int = 0  # how many asked for one
    making: threading.Lock = field(default_factory=threading.Lock)  # one thread makes them; other models go on
    drafts: dict[str, Draft | None] = field(default_factory=dict)  # those tried, by name; None if it cannot be made
    written: int = 0  # pieces of drafts that were checked
    right: int = 0  # of them, those that the model would have written


_KNOWN: WeakKeyDictionary[Transformer, _Known] = WeakKeyDictionary()
_LOCK = threading.Lock()


def setting() -> str:
    """Which draft is asked for; anything unknown counts as `auto`."""
    asked = os.environ.get(ENVIRONMENT, "auto")
    return asked if asked in CHOICES else "auto"


def draft_for(reading: EncodedBatch) -> Draft | None:
    """The draft for a reading, made if need be; None if the model shall write step by step."""
    asked, model = setting(), reading.checkpoint.model
    if asked == "none" or not model.anatomy.writes or not _stays(model):
        return None
    with _LOCK:
        known = _KNOWN.setdefault(model, _Known())
        known.runs += 1
        if (asked == "auto" and known.runs == 1) or not _pays(known):
            return None
    with known.making:
        for name in CHOICES[asked]:
            if not _SUITS[name](reading):
                continue  # none is made for it either
            if name not in known.drafts:
                known.drafts[name] = _made(reading.checkpoint, name)
            draft = known.drafts[name]
            if draft is not None and draft.suits(reading):
                return draft
    return None


def judge(model: Transformer, *, written: int, right: int) -> None:
    """Remember how much of a draft was right."""
    with _LOCK:
        known = _KNOWN.setdefault(model, _Known())
        before = _pays(known)
        known.written, known.right = known.written + written, known.right + right
        if before and not _pays(known):
            _LOG.info("drafts are not used any more: only %d of %d tokens were right", known.right, known.written)


def failed(model: Transformer, draft: Draft, error: Exception) -> None:
    """Use a draft no more that could not be written; the model's others stay."""
    _LOG.warning("drafts by %s are not used any more: %r", draft.name, error)
    with _LOCK:
        known = _KNOWN.setdefault(model, _Known())
        if known.drafts.get(draft.name) is draft:
            known.drafts[draft.name] = None


def steps(model: Transformer, memory: Tensor | None, n: int, *, int8: bool) -> Callable[[], int] | None:
    """What writes `n` pieces as `int8` does, or without rounding; None where torch cannot do that."""
    least, int8_draft.SMALLEST = int8_draft.SMALLEST, int8_draft.SMALLEST if int8 else sys.maxsize
    try:
        decoder = int8_draft.QuickDecoder(model)
    except (RuntimeError, AttributeError):
        return None
    finally:
        int8_draft.SMALLEST = least

    @torch.inference_mode()
    def write() -> int:
        prefix = int8_draft.QuickPrefix(decoder, model, torch.ones(1, 1, dtype=torch.long), memory, None, room=n)
        for _ in range(n):
            prefix.append(prefix.next_log_probs().argmax(dim=-1))
        return n

    return write


def _pays(known: _Known) -> bool:
    return known.written < TRIED or known.right >= WORTH * known.written


def _stays(model: Transformer) -> bool:
    """Whether its parameters stay as they are, and are of a kind and number that a draft can be made of."""
    table = model.target_table
    usual = table.device.type == "cpu" and table.dtype != torch.float64
    return usual and not table.requires_grad and model.config.count_parameters() <= MOST_PARAMETERS


def _made(checkpoint: Runnable, name: str) -> Draft | None:
    began = time.monotonic()
    try:
        by_engine = name == "ctranslate2"
        draft: Draft = ctranslate2_draft.made(checkpoint) if by_engine else int8_draft.Int8(checkpoint.model)
    except Exception as error:  # nothing for this model or machine, no room, another version of a package
        _LOG.info("%s: no drafts by %s: %s", checkpoint.name, name, error)
        return None
    _LOG.info("%s: drafts by %s, made in %.2f s", checkpoint.name, name, time.monotonic() - began)
    return draft
