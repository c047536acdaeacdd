"""The question: why did a step write its piece, given what it had read?

Everything here explains one number, the log-probability of that piece in nats. A logit alone is not enough: adding
the same number to all logits changes no probability.

A step is read alone: the source and what the decoder had read by then, nothing later. So the answer is right for any
change inside the model, even one that lets tokens see what comes after them.

Shapes: R rows read at once, S source tokens, T tokens that the decoder had read, V target vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.anatomy import StackName
from transformer.model.taps import NO_TAP, Tap
from transformer.model.transformer import Transformer
from transformer.runs.changing import tap_of_run
from transformer.runs.runnable import Runnable
from transformer.runs.trace import Trace


@dataclass(frozen=True, eq=False)
class Asked:
    """One step and its piece."""

    model: Transformer  # the model
    src_ids: Tensor  # what the encoder reads [1, S]
    read_ids: Tensor  # what the decoder had read [1, T]
    piece: int  # the id that is explained
    n_source: int  # pieces of the source that are no padding
    tap: Tap = NO_TAP  # what the run was made with

    @property
    def stack(self) -> StackName:
        """The stack that reads the pieces: the encoder; without one, the decoder with all that it had read."""
        return "encoder" if self.model.anatomy.reads else "decoder"

    @property
    def n_pieces(self) -> int:
        """Number of pieces that get credit."""
        return self.n_source if self.stack == "encoder" else self.read_ids.size(1)

    @property
    def tokens(self) -> str:
        """The site where the pieces enter."""
        return f"{self.stack}.embedding.tokens"

    def about(self, piece: int) -> Asked:
        """The same step with another piece."""
        return replace(self, piece=piece)

    def logits(self, *, tap: Tap | None = None, rows: int = 1) -> Tensor:
        """The logits of the step [R, V], read R times, with the run's tap or another, which may make rows differ."""
        seen = self.tap if tap is None else tap
        memory, mask = None, None
        if self.model.anatomy.reads:
            source = self.src_ids.expand(rows, -1)
            memory, mask = self.model.encode(source, tap=seen), self.model.source_mask(source)
        hidden = self.model.decode(self.read_ids.expand(rows, -1), memory, mask, tap=seen)  # [R, T, D]
        return self.model.project(hidden[:, -1:], tap=seen)[:, 0]

    def log_probs(self, *, tap: Tap | None = None, rows: int = 1) -> Tensor:
        """The log-probability of the piece, in nats [R]; the arguments are those of `logits`."""
        return self.logits(tap=tap, rows=rows).log_softmax(dim=-1)[:, self.piece]

    @cached_property
    def log_prob(self) -> float:
        """The log-probability of the piece, in nats."""
        with torch.inference_mode():
            return float(self.log_probs()[0])


def ask(checkpoint: Runnable, trace: Trace, step: int, *, piece: int | None = None, tap: Tap = NO_TAP) -> Asked:
    """Ask why a step, from 0, wrote its piece, or another possible piece; `tap` is the run's besides the query.

    A QueryError says that the trace is of another checkpoint, that the model writes nothing, or that there is no such
    step or piece.
    """
    tap = _tap(checkpoint, trace, tap)
    _check_step(checkpoint, trace, step, piece)
    return _asked(checkpoint, trace, step, piece, tap)


def ask_each(checkpoint: Runnable, trace: Trace) -> tuple[Asked, ...]:
    """Ask why each step wrote its piece; see `ask`."""
    tap = _tap(checkpoint, trace, NO_TAP)
    return tuple(_asked(checkpoint, trace, step, None, tap) for step in range(trace.n_steps))


def _asked(checkpoint: Runnable, trace: Trace, step: int, piece: int | None, tap: Tap) -> Asked:
    with torch.inference_mode(False):  # what it holds is used where gradients are taken
        return Asked(
            model=checkpoint.model,
            src_ids=torch.tensor([trace.src_ids], dtype=torch.long),
            read_ids=torch.tensor([trace.read_ids[: trace.row_of(step) + 1]], dtype=torch.long),
            piece=trace.tgt_ids[step] if piece is None else piece,
            n_source=trace.n_tokens("encoder"),
            tap=tap,
        )


def _tap(checkpoint: Runnable, trace: Trace, tap: Tap) -> Tap:
    with torch.inference_mode(False):
        found = tap_of_run(checkpoint, trace.query, tap)
    checkpoint.model.anatomy.stack("decoder")
    return found


def _check_step(checkpoint: Runnable, trace: Trace, step: int, piece: int | None) -> None:
    if not 0 <= step < trace.n_steps:
        raise QueryError(
            "step {index} does not exist; this run has steps 0 to {last}.", index=step, last=trace.n_steps - 1
        )
    size = checkpoint.config.tgt_vocab_size
    if piece is not None and not 0 <= piece < size:
        raise QueryError("piece id {i} is outside the vocabulary; ids go from 0 to {last}.", i=piece, last=size - 1)
