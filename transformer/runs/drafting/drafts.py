"""What writes a draft: a guess of an output, made sooner than the model itself could write it.

A draft may be wrong anywhere: `transformer.runs.drafting.checking` reads it once with the model and keeps only what
the model would have written. So which draft is used changes how long a run takes, and nothing else.

    GLASSFORMER_DRAFT=auto          int8 from the second run of a checkpoint on (making it takes time)
    GLASSFORMER_DRAFT=int8          the model with 8-bit matrices, from the first run on
    GLASSFORMER_DRAFT=ctranslate2   CTranslate2, if it is installed and can run the model; else int8
    GLASSFORMER_DRAFT=none          every piece is written by the model itself, step by step

A model whose drafts are mostly wrong gets none any more. The log says which draft a model has.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import torch

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer
    from transformer.runs.reading import Reading

Ids = tuple[int, ...]
Pause = Callable[[], None]
ENVIRONMENT = "GLASSFORMER_DRAFT"
CHOICES = ("auto", "int8", "ctranslate2", "none")
TRIED = 200  # pieces after which a model's drafts are judged
WORTH = 0.6  # share of them that has to be right, or drafting costs more than it saves

_LOG = logging.getLogger("glassformer.drafts")


class Draft(Protocol):
    """Writes guesses of outputs for one model."""

    @property
    def name(self) -> str:
        """Its name in settings and in the log."""

    def suits(self, reading: Reading) -> bool:
        """Whether it can write for a reading: its way of decoding, its changes."""

    def write(self, reading: Reading, rows: Sequence[int], begun: Sequence[Ids], pause: Pause) -> list[Ids]:
        """A guess of the output of some rows of a reading's batch.

        Args:
            reading: Queries whose sources have been read; `suits` is true of it.
            rows: Which of its rows.
            begun: What each row's output begins with; the guess begins with it, too.
            pause: Called between two rounds of decoding.

        Returns:
            The outputs, the end piece included where one ended: at least a piece more than what they begin with, and
            at most as many as may be written.
        """


@dataclass
class _Known:
    """What is known of one model's drafts."""

    runs: int = 0  # how many asked for one
    drafts: dict[str, Draft | None] | None = None  # those made, by the setting; None if none can be made
    written: int = 0  # pieces of drafts that were checked
    right: int = 0  # of them, those that the model would have written


_KNOWN: WeakKeyDictionary[Transformer, _Known] = WeakKeyDictionary()
_LOCK = threading.Lock()


def setting() -> str:
    """Which draft is asked for; anything unknown counts as `auto`."""
    asked = os.environ.get(ENVIRONMENT, "auto")
    return asked if asked in CHOICES else "auto"


def draft_for(reading: Reading) -> Draft | None:
    """The draft for a reading, made if need be; None if the model shall write step by step."""
    asked, model = setting(), reading.checkpoint.model
    if asked == "none" or not model.anatomy.writes or not _stays(model):
        return None
    with _LOCK:
        known = _KNOWN.setdefault(model, _Known())
        known.runs += 1
        if (asked == "auto" and known.runs == 1) or not _pays(known):
            return None
        known.drafts = known.drafts or {}
        if asked not in known.drafts:
            known.drafts[asked] = _made(reading, asked)
        draft = known.drafts[asked]
    return draft if draft is not None and draft.suits(reading) else None


def judge(model: Transformer, *, written: int, right: int) -> None:
    """Remember how much of a draft was right."""
    with _LOCK:
        known = _KNOWN.setdefault(model, _Known())
        before = _pays(known)
        known.written, known.right = known.written + written, known.right + right
        if before and not _pays(known):
            _LOG.info("drafts are not used any more: only %d of %d pieces were right", known.right, known.written)


def _pays(known: _Known) -> bool:
    return known.written < TRIED or known.right >= WORTH * known.written


def _stays(model: Transformer) -> bool:
    """Whether its parameters stay as they are and where a draft can be made of them."""
    table = model.target_table
    return not table.requires_grad and table.device.type == "cpu" and table.dtype != torch.float64


def _made(reading: Reading, asked: str) -> Draft | None:
    from transformer.runs.drafting import ct2, quick  # here: they need what a run needs, and a run asks for drafts

    began, checkpoint, found = time.monotonic(), reading.checkpoint, None
    try:
        if asked == "ctranslate2":
            found = ct2.made(checkpoint)
            if found is None:
                _LOG.info("%s: no draft by ctranslate2: %s", checkpoint.name, ct2.why_not(checkpoint))
        draft: Draft = found or quick.Int8(checkpoint.model)
    except (RuntimeError, AttributeError, OSError, MemoryError) as error:  # nothing for this machine, or no room
        _LOG.info("%s: no draft, every piece is written step by step: %s", checkpoint.name, error)
        return None
    _LOG.info("%s: drafts by %s, made in %.2f s", checkpoint.name, draft.name, time.monotonic() - began)
    return draft
