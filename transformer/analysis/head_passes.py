"""One pass over a finished run in which each row of the batch lacks a different head; used by `head_effects`.

Up to the first of its heads a pass has one row, which is then copied, so everything before is computed once. If only
the decoder changes, the encoder is not computed.

Shapes: R rows of a pass, H heads, Q queries, T steps, S source tokens, D d_model, V target vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer.analysis.hidden_pieces import check_hidden
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.model.linear import widened
from transformer.model.taps import NO_TAP, Replacer, Tap
from transformer.model.transformer import Transformer
from transformer.runs.changing import tap_of_run
from transformer.runs.interventions import as_changed
from transformer.runs.runnable import Runnable
from transformer.runs.trace import Trace

MOST_LOGITS = 2**22  # that are looked at at once, 16 MB in float32


@dataclass(frozen=True)
class Head:
    """One head: its attention, layer and place, from 0."""

    kind: Kind
    layer: int
    head: int


@dataclass(frozen=True, eq=False)
class Control:
    """The pass with every head in place."""

    memory: Tensor | None  # what the encoder gives [1, S, D]; None without one
    log_probs: Tensor  # of each step [T, V], in nats
    chosen: Tensor  # of the step's own piece [T]
    best: Tensor  # the most probable ids [T]


Rows = dict[str, Tensor]
"""What the rows of a pass gave, by the fields of `head_effects.Effect`: [R, T] each, and `vectors` [R, S]."""


def zeroed(heads: Sequence[Head], config: ModelConfig) -> Replacer:
    """Sets a different head to 0 in each row; at the first of these heads, one row is copied to as many as needed."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, one in enumerate(heads):
        rows[anatomy(config).attention(one.kind).site(one.layer, "heads")].append((row, one.head))

    def zero(here: list[tuple[int, int]], value: Tensor) -> Tensor:  # [1 or R, H, Q, d] -> [R, H, Q, d]
        changed = value.expand(len(heads), -1, -1, -1).clone()
        for row, head in here:
            changed[row, head] = 0.0
        return changed

    return Replacer({site: partial(zero, here) for site, here in rows.items()}, causal=True)


@dataclass(frozen=True, eq=False)
class Reading:
    """What is read in every pass."""

    model: Transformer  # the model
    config: ModelConfig  # its features; with other heads, if the run cuts them otherwise
    src_ids: Tensor  # what the encoder reads [1, S]
    read_ids: Tensor  # what the decoder reads [1, tokens], without what comes after the output
    rows: slice  # which of the last vectors give the steps
    ids: Tensor  # the piece of each step [T]
    tap: Tap  # the interventions that are in force throughout

    @staticmethod
    def of(checkpoint: Runnable, trace: Trace, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP) -> Reading:
        """The reading of a run; arguments and errors as in `head_effects`."""
        tap = tap_of_run(checkpoint, trace.query, tap)
        source, rows = list(trace.src_ids), slice(trace.first_row, trace.first_row + trace.n_steps)
        ids = trace.tgt_ids
        if hidden is not None:
            place, mask = hidden
            check_hidden(checkpoint.model, [place], len(source))
            rows, ids = slice(place, place + 1), (source[place],)
            source[place] = mask
        return Reading(
            model=checkpoint.model,
            config=as_changed(trace.query.interventions, checkpoint.config),
            src_ids=torch.tensor([source]),
            read_ids=torch.tensor([trace.read_ids[: rows.stop]], dtype=torch.long),
            rows=rows,
            ids=torch.tensor(ids, dtype=torch.long, device=checkpoint.model.device),
            tap=tap,
        )

    @torch.inference_mode()
    def control(self) -> Control:
        """Read it with every head in place."""
        memory = self._memory(self.tap)
        last = self._last(memory, self.tap)  # [1, T, D]
        parts = [self._log_probs(last[:, some], self.tap)[0] for _, some in self._parts(last)]
        log_probs = torch.cat(parts) if parts else last.new_zeros(0, 1)  # [T, V]
        return Control(memory, log_probs, log_probs.gather(1, self.ids[:, None])[:, 0], log_probs.argmax(dim=1))

    @torch.inference_mode()
    def without(self, heads: Sequence[Head], control: Control) -> Rows:
        """Read it with a different head removed in each row, all of one stack."""
        tap = self.tap.also(zeroed(heads, self.config))
        memory = self._memory(tap) if heads[0].kind == "encoder" else control.memory
        # Where a skipped layer hides all of the heads, there is one row still.
        last = self._last(memory, tap).expand(len(heads), -1, -1)  # [R, T, D]
        n_rows, n_steps = last.shape[:2]
        moved = self._moved(memory, control)
        found = {name: control.chosen.new_empty(n_rows, n_steps) for name in ("log_prob", "probability", "kl")}
        found["best"] = self.ids.new_empty(n_rows, n_steps)
        found["vectors"] = last.new_empty(n_rows, 0) if moved is None else moved.expand(n_rows, -1)
        for rows, steps in self._parts(last):
            self._compare(self._log_probs(last[rows, steps], tap), control, found, rows, steps)
        return found

    def _memory(self, tap: Tap) -> Tensor | None:
        return self.model.encode(self.src_ids, tap=tap) if self.model.anatomy.reads else None

    def _last(self, memory: Tensor | None, tap: Tap) -> Tensor:
        """The vectors that the logits of the steps come from [R, T, D]."""
        if memory is not None and not self.model.anatomy.writes:
            return memory[:, self.rows] if self.ids.numel() else memory[:, :0]
        mask = self.model.source_mask(self.src_ids) if memory is not None else None
        if tap.causal:
            return self.model.decode(self.read_ids, memory, mask, tap=tap)[:, self.rows]
        # What mixes tokens makes something else of each prefix, as decoding did (`transformer.runs.recording`).
        lengths = range(self.rows.start + 1, self.rows.stop + 1)
        ends = [self.model.decode(self.read_ids[:, :n], memory, mask, tap=tap)[:, -1:] for n in lengths]
        return torch.cat(ends, dim=1)

    def _parts(self, last: Tensor) -> Iterator[tuple[slice, slice]]:
        """Rows and steps whose logits are looked at at once."""
        n_rows, n_steps = last.shape[:2]
        at_once = max(1, MOST_LOGITS // max(self.config.tgt_vocab_size, 1))
        steps = max(1, min(n_steps, at_once))
        rows = max(1, at_once // steps)
        for row in range(0, n_rows, rows):
            for step in range(0, n_steps, steps):
                yield slice(row, row + rows), slice(step, step + steps)

    def _log_probs(self, last: Tensor, tap: Tap) -> Tensor:
        """[R, T, D] -> [R, T, V]."""
        return widened(self.model.project(last, tap=tap)).log_softmax(dim=-1)

    def _compare(self, after: Tensor, control: Control, found: Rows, rows: slice, steps: slice) -> None:
        """Put in what a part of the rows and steps gave [R, T, V]."""
        before, ids = control.log_probs[steps], self.ids[steps]
        own = after.gather(2, ids.expand(len(after), -1)[..., None])[..., 0]  # [R, T]
        found["log_prob"][rows, steps] = own - control.chosen[steps]
        found["probability"][rows, steps] = own.exp() - control.chosen[steps].exp()
        found["best"][rows, steps] = after.argmax(dim=-1)
        shares = before.exp()
        terms = (before - after).mul_(shares)
        terms.masked_fill_(shares == 0, 0.0)  # 0 ln 0 is 0, also where both are minus infinity
        found["kl"][rows, steps] = terms.sum(dim=-1).clamp_(min=0.0)  # below 0 is rounding

    def _moved(self, memory: Tensor | None, control: Control) -> Tensor | None:
        """Of an encoder alone: how far its final vectors moved, as a share of their length [R, S]."""
        if memory is None or control.memory is None or self.model.anatomy.writes:
            return None
        return (memory - control.memory).norm(dim=-1) / control.memory.norm(dim=-1)
