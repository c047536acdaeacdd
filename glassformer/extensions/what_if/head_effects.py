"""Zero ablation of each head of a run in batched passes: change of log-probability, KL, best token, vectors.

The effect of a head is how the output's probabilities change when only that head writes nothing.

Every head is set to 0 in turn while the model reads the finished output (teacher forcing). Nothing is decoded again,
so every step compares the same pieces. Many heads are measured in one pass, in which each row of the batch lacks a
different head. Up to the first of its heads a pass has one row, which is then copied, so everything before is
computed once. If only the decoder changes, the encoder is not computed.

It says what the output owes to a head while all other heads are present. If two heads can replace each other, neither
seems to matter; and the layers above were never trained on a head that writes nothing.

Source: Michel et al., "Are Sixteen Heads Really Better than One?" (2019), section 2.3 for heads set to 0 and section
3.2 for one at a time. McGrath et al., "The Hydra Effect" (2023), for layers that compensate for a removed one.

Shapes: L layers, H heads, R rows of a pass, Q queries, T steps, S source tokens, D d_model, V target vocabulary.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import torch
from torch import Tensor

from transformer.analysis.hidden_pieces import check_hidden
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig
from transformer.model.module import widened
from transformer.model.taps import NO_TAP, Replacer, Tap
from transformer.model.transformer import Transformer
from transformer.runs.apply_interventions import tap_of_run
from transformer.runs.array_records import ArrayRecord, Progress, whole
from transformer.runs.interventions import as_changed
from transformer.runs.query import Runnable
from transformer.runs.trace import Trace

MOST_LOGITS = 2**19  # computed at once, 2 MB in float32: they stay in the cache


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
    shift: Tensor  # by how much the logits were larger [T]
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
class EffectReading:
    """What is read in every pass."""

    model: Transformer  # the model
    config: ModelConfig  # its features; with other heads, if the run cuts them otherwise
    src_ids: Tensor  # what the encoder reads [1, S]
    read_ids: Tensor  # what the decoder reads [1, tokens], without what comes after the output
    rows: slice  # which of the last vectors give the steps
    ids: Tensor  # the piece of each step [T]
    tap: Tap  # the interventions that are in force throughout

    @staticmethod
    def of(
        checkpoint: Runnable, trace: Trace, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP
    ) -> EffectReading:
        """The reading of a run; arguments and errors as in `head_effects`."""
        tap = tap_of_run(checkpoint, trace.query, tap)
        source, rows = list(trace.src_ids), slice(trace.first_row, trace.first_row + trace.n_steps)
        ids = trace.tgt_ids
        if hidden is not None:
            place, mask = hidden
            check_hidden(checkpoint.model, [place], len(source))
            rows, ids = slice(place, place + 1), (source[place],)
            source[place] = mask
        return EffectReading(
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
        logits = torch.cat(list(self._logits(self._last(memory, self.tap), self.tap)), dim=-1)[0]  # [T, V]
        log_probs, shift, best = logits.log_softmax(dim=1), logits.logsumexp(dim=1), logits.argmax(dim=1)
        return Control(memory, log_probs, shift, log_probs.gather(1, self.ids[:, None])[:, 0], best)

    @torch.inference_mode()
    def without(self, heads: Sequence[Head], control: Control) -> Rows:
        """Read it with a different head removed in each row, all of one stack."""
        tap = self.tap.also(zeroed(heads, self.config))
        memory = self._memory(tap) if heads[0].kind == "encoder" else control.memory
        # Where a skipped layer hides all of the heads, there is one row still.
        last = self._last(memory, tap).expand(len(heads), -1, -1)  # [R, T, D]
        # A tap that sees logits sees a whole row at once: memory then suffices for one row.
        parts = [self._compared(rows, control, tap) for rows in last.split(1 if tap.wants("logits") else len(last))]
        moved = self._moved(memory, control)
        vectors = last.new_empty(len(last), 0) if moved is None else moved.expand(len(last), -1)
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]} | {"vectors": vectors}

    def _memory(self, tap: Tap) -> Tensor | None:
        return self.model.encode(self.src_ids, tap=tap) if self.model.anatomy.reads else None

    def _last(self, memory: Tensor | None, tap: Tap) -> Tensor:
        """The vectors from which the logits are computed [R, T, D]."""
        if memory is not None and not self.model.anatomy.writes:
            return memory[:, self.rows] if self.ids.numel() else memory[:, :0]
        mask = self.model.source_mask(self.src_ids) if memory is not None else None
        if tap.causal:
            return self.model.decode(self.read_ids, memory, mask, tap=tap)[:, self.rows]
        # What mixes tokens makes something else of each prefix, as decoding did (`transformer.runs.recording_pass`).
        lengths = range(self.rows.start + 1, self.rows.stop + 1)
        ends = [self.model.decode(self.read_ids[:, :n], memory, mask, tap=tap)[:, -1:] for n in lengths]
        return torch.cat(ends, dim=1)

    def _logits(self, last: Tensor, tap: Tap) -> Iterator[Tensor]:
        """[R, T, D] -> [R, T, v], a part of the vocabulary at a time."""
        if not self.ids.numel():  # no step: an encoder-only model may have no logits
            yield last[..., :1]
            return
        at_once = max(1, MOST_LOGITS // last[..., 0].numel())
        # Contiguous, or each row would be a product of its own.
        for part in self.model.project_in_parts(last.contiguous(), at_once, tap=tap):
            yield widened(part)

    def _compared(self, last: Tensor, control: Control, tap: Tap) -> Rows:
        """What rows [R, T, D] give, from sums over parts of the vocabulary."""
        own, first = control.chosen.new_empty(last.shape[:2]), 0
        found: list[tuple[Tensor, ...]] = []
        for part in self._logits(last, tap):
            # Nearly log-probabilities, so rounding is small [R, T, v]; what a tap has seen stays as it was.
            after = torch.sub(part, control.shift[:, None], out=None if tap.wants("logits") else part)
            ids, before = self.ids - first, control.log_probs[:, first : first + after.size(-1)]  # [T], [T, v]
            here = (ids >= 0) & (ids < after.size(-1))
            own[:, here] = after[:, here, ids[here]]
            shares = before.exp()
            room = before - after  # used twice: fresh memory takes longer than the arithmetic
            moved = room.mul_(shares).nansum(dim=-1)  # 0 ln 0 is 0, also of minus infinity
            top, best = after.max(dim=-1)
            peak = top.clamp(min=torch.finfo(top.dtype).min)
            total = torch.sub(after, peak[..., None], out=room).exp_().sum(dim=-1).log_() + peak
            found.append((total, shares.sum(dim=-1), moved, top, best + first))
            first += after.size(-1)
        totals, sums, moves, tops, bests = (torch.stack(parts) for parts in zip(*found, strict=True))
        total = totals.logsumexp(dim=0)  # [R, T]
        own -= total
        kl = moves.sum(dim=0) + total * sums.sum(dim=0)
        return {
            "log_prob": own - control.chosen,
            "probability": own.exp() - control.chosen.exp(),
            "kl": kl.clamp_(min=0.0),  # below 0 is rounding
            "best": bests.gather(0, tops.argmax(dim=0, keepdim=True))[0],
        }

    def _moved(self, memory: Tensor | None, control: Control) -> Tensor | None:
        """In an encoder-only model: how far its final vectors moved, as a share of their length [R, S]."""
        if memory is None or control.memory is None or self.model.anatomy.writes:
            return None
        return (memory - control.memory).norm(dim=-1) / control.memory.norm(dim=-1)


MOST_VALUES = 2**24  # of the largest array inside one pass, 64 MB in float32
TOKENS = 256  # of all rows of a pass: from there on a matrix is used often enough to be worth fetching


@dataclass(frozen=True, eq=False)
class Effect(ArrayRecord):
    """The effect of zeroing each head of one attention."""

    # Change of the log-probability of each step's piece, in nats [L, H, T]; below 0 the piece loses.
    log_prob: np.ndarray
    probability: np.ndarray  # change of its probability [L, H, T]
    kl: np.ndarray  # how far the distribution of the next piece moves, KL(before, after) in nats [L, H, T]
    best: np.ndarray  # the id that is then most probable [L, H, T]
    # In an encoder-only model, how far each token's final vector moves, as a share of its length [L, H, S]; else
    # [L, H, 0].
    vectors: np.ndarray


@dataclass(frozen=True, eq=False)
class HeadEffects(ArrayRecord):
    """The effects of all heads on one run."""

    of: Mapping[Kind, Effect]  # by attention, in the order of the computation
    ids: np.ndarray  # the pieces whose probabilities are measured, one a step [T]
    log_prob: np.ndarray  # their log-probabilities with every head in place, in nats [T]
    best: np.ndarray  # the most probable ids then [T]

    def changed(self, kind: Kind) -> np.ndarray:
        """Whether another piece then becomes the most probable, bool [L, H, T]."""
        return np.asarray(self.of[kind].best != self.best)


def key_of(trace: Trace) -> Hashable:
    """All that decides the effects on a run."""
    return "head_effects", trace.query, trace.src_ids, trace.read_ids


def head_effects(
    checkpoint: Runnable, trace: Trace, *, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP
) -> HeadEffects:
    """Measure the effect of each head on a run, with the run's own interventions always applied.

    `hidden` is for an encoder-only model with an MLM head: a token, from 0, and the id of the mask piece that
    replaces it; the only step is then the piece that was there. Without it, only an encoder's vectors are compared.
    `tap` is the tap that the run had besides its query. The effects equal those of one pass per head, up to rounding.
    A QueryError says that the trace is of another checkpoint, or that the token cannot be hidden.
    """
    return whole(measuring(checkpoint, trace, hidden=hidden, tap=tap))


def measuring(
    checkpoint: Runnable, trace: Trace, *, hidden: tuple[int, int] | None = None, tap: Tap = NO_TAP
) -> Generator[Progress, None, HeadEffects]:
    """`head_effects` pass by pass: yields before each how many heads are done, so a caller may stop at any point."""
    reading = EffectReading.of(checkpoint, trace, hidden, tap)
    groups = list(together(reading.config, reading.src_ids.size(1), reading.read_ids.size(1)))
    n_heads, done = sum(map(len, groups)), 0
    yield Progress(done, n_heads)
    control = reading.control()
    found: dict[Kind, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        yield Progress(done, n_heads)
        for name, rows in reading.without(group, control).items():
            for value, one in zip(rows.numpy(force=True), group, strict=True):  # [T] or [S]
                found[one.kind][name].append(value)
        done += len(group)

    def of_all_heads(values: list[np.ndarray], n_layers: int) -> np.ndarray:  # [L, H, ...]
        return np.stack(values).reshape(n_layers, len(values) // n_layers, *values[0].shape)

    return HeadEffects(
        of={
            one.kind: Effect(**{name: of_all_heads(each, one.n_layers) for name, each in found[one.kind].items()})
            for one in anatomy(checkpoint.config).attentions
        },
        ids=reading.ids.numpy(force=True),
        log_prob=control.chosen.numpy(force=True),
        best=control.best.numpy(force=True),
    )


def together(config: ModelConfig, n_source: int, n_target: int) -> Iterator[list[Head]]:
    """The heads of each pass, in the order of the computation; never heads of both stacks.

    More rows use each matrix more often, but rows differ from their first zeroed head on, so more rows compute more. So
    there are just enough rows to fill a pass with tokens, within the memory limit.
    """
    longest = max(n_source, n_target)
    for stack in anatomy(config).stacks:
        own = config.of(stack.name)
        widest = longest * max(3 * own.d_model, 2 * own.d_ff, own.n_heads * longest)  # values of a row
        most = max(1, MOST_VALUES // widest)
        group: list[Head] = []
        kinds = [one.kind for one in anatomy(config).attentions if one.stack == stack.name]
        places = product(range(stack.n_layers), kinds, range(own.n_heads))
        for one in (Head(kind, layer, head) for layer, kind, head in places):
            is_enough = one.head == 0 and len(group) * (n_target or n_source) >= TOKENS
            if group and (is_enough or len(group) >= most):
                yield group
                group = []
            group.append(one)
        yield group
