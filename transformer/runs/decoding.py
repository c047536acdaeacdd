"""Greedy decoding and sampling, one token at a time, for the rows of a batch (`Prefix`, `DecodedRow`).

A `Prefix` is the output so far, for every row of a batch; it computes the log-probabilities of the next piece.
`write_rows` decodes rows of which each has its own way of choosing, forced pieces, rules, seed and limit. `greedy` is a
generator: each round asks the prefix, chooses the best piece of each row and yields a `DecodeStep`, until every row has
ended or the limit is reached. Beam search is in `transformer.runs.beam`.

Shapes: B batch rows, S source tokens, T target tokens so far, V target vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.distribution import Rules, check_open, race, sampling_distribution, scores_of
from transformer.runs.inputs import Source, rules_for
from transformer.runs.query import Query, Sampling
from transformer.runs.recording_pass import first_site, not_finite

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


@dataclass(frozen=True)
class DecodeStep:
    """One round of decoding."""

    index: int  # the round, from 0; it chose target piece `index`
    ids: tuple[int, ...]  # the id that each row chose; the filling id in rows that had already ended
    log_probs: tuple[float, ...]  # its log-probability under the model, in nats; 0 in rows that had already ended
    finished: tuple[bool, ...]  # whether each row has ended by now


class Prefix:
    """The target so far in every row, and what the model needs to continue it.

    It begins with the start piece, or in a decoder-only model with the prompt. The source ids [B, S] are padded, but
    prompts of a decoder-only model have one length. A new `KVCache` is filled as the prefix grows. Without one, and
    with a tap that is not causal, every prefix is computed again, because further tokens may change the values of a
    token. `memory` is the encoder's output, if it has read the source already. `insisted` has the pieces that every
    row writes at these places of its output, from 0. A QueryError says that the model has no decoder, or that prompts
    have different lengths.
    """

    def __init__(
        self,
        model: Transformer,
        src_ids: Tensor,
        *,
        cache: KVCache | None,
        memory: Tensor | None = None,
        tap: Tap = NO_TAP,
        insisted: Mapping[int, int] | None = None,
    ) -> None:
        model.anatomy.stack("decoder")
        self.insisted = insisted or {}
        src_ids = src_ids.to(model.device)
        self.model, self.tap, self._src_ids = model, tap, src_ids
        self.log_sums = torch.zeros(src_ids.size(0))
        self.cache = cache if tap.causal else None
        self.memory, self.src_mask = memory, None
        mask = model.source_mask(src_ids)
        if model.anatomy.reads:
            self.src_mask = None if tap is NO_TAP and bool(mask.all()) else mask
            self.memory = model.encode(src_ids, tap=tap) if memory is None else memory
            start = model.config.decoder_start_id
            self.ids = torch.full((src_ids.size(0), 1), start, device=src_ids.device)  # [B, T]
        elif bool(mask.all()):
            self.ids = src_ids
        else:
            raise QueryError("prompts decoded together must have the same length and no padding.")
        self.n_prompt = self.ids.size(1)

    @property
    def written(self) -> Tensor:
        """The pieces that were appended so far [B, written]."""
        return self.ids[:, self.n_prompt :]

    def next_log_probs(self) -> Tensor:
        """Log-probabilities of the next piece [B, V], in nats; `log_sums` [B] is logits minus these."""
        n_past = self.cache.length if self.cache is not None else 0
        hidden = self.model.decode(
            self.ids[:, n_past:], self.memory, self.src_mask, tap=self.tap, cache=self.cache
        )  # [B, T, D]
        last = hidden[:, -1:] if self.tap.causal else hidden  # a tap may mix the logits of tokens
        logits = self.model.project(last, tap=self.tap.at(n_past))[:, -1]
        log_probs = logits.log_softmax(dim=-1)
        if self.model.config.has_rules or self.insisted:  # nothing else asks for them
            self.log_sums = logits.logsumexp(dim=-1)
        if math.isnan(log_probs[:, 0].sum()):  # one logit that is NaN makes all of its row NaN, and so the sum
            raise not_finite(self._first_site(), tap=self.tap)
        return log_probs

    def _first_site(self) -> str:
        """Where the model first computes what is not finite, now that something is not."""

        def again(tap: Tap) -> None:
            if self.model.anatomy.reads:
                self.model.encode(self._src_ids, tap=tap)
            self.model.project(self.model.decode(self.ids, self.memory, self.src_mask, tap=tap), tap=tap)

        return first_site(again, tap=self.tap) or "logits"  # if only the tap put it there

    def append(self, ids: Tensor) -> None:
        """Add one piece to every row; ids [B]."""
        self.ids = torch.cat((self.ids, ids[:, None].to(self.ids.device)), dim=1)

    def select(self, rows: Tensor) -> None:
        """Keep the given rows (int [rows]), in the given order; a row may be taken twice."""
        rows = rows.to(self.ids.device)
        self.ids = self.ids[rows]
        self.memory = None if self.memory is None else self.memory[rows]
        self.src_mask = None if self.src_mask is None else self.src_mask[rows]
        if self.cache is not None:
            self.cache.select(rows)


def greedy(prefix: Prefix, *, max_new: int, forced: Sequence[Sequence[int]] | None = None) -> Iterator[DecodeStep]:
    """Choose the most probable piece each time; each row begins with its forced pieces."""
    config, end_ids = prefix.model.config, prefix.model.config.end_ids
    rules = [Rules(config, prefix.n_prompt, max_new, prefix.insisted)] * prefix.ids.size(0)
    finished = (False,) * prefix.ids.size(0)  # kept in Python: on a batch of a few, tensors would only cost time
    for index in range(max_new):
        log_probs = prefix.next_log_probs()  # [B, V]
        scores = scores_of(log_probs, prefix.ids, prefix.log_sums, rules)  # [B, V]
        if rules[0].any:
            check_open(scores)
        ids = scores.argmax(dim=-1)  # [B]
        for row, wanted in enumerate(forced or ()):
            if index < len(wanted):
                ids[row] = wanted[index]
        chosen = log_probs.gather(1, ids[:, None])[:, 0].tolist()
        step_ids = tuple(config.fill_id if over else i for i, over in zip(ids.tolist(), finished, strict=True))
        step_log_probs = tuple(0.0 if over else value for value, over in zip(chosen, finished, strict=True))
        finished = tuple(over or i in end_ids for i, over in zip(step_ids, finished, strict=True))
        yield DecodeStep(index, step_ids, step_log_probs, finished)
        if all(finished):
            return
        prefix.append(torch.tensor(step_ids))


def collect(steps: Iterator[DecodeStep]) -> list[list[int]]:
    """Run a generator to its end and collect each row's ids, without the padding after its end."""
    rows: list[list[int]] = []
    ended: tuple[bool, ...] = ()
    for step in steps:
        rows = rows or [[] for _ in step.ids]
        ended = ended or (False,) * len(step.ids)
        for row, i, over in zip(rows, step.ids, ended, strict=True):
            if not over:
                row.append(i)
        ended = step.finished
    return rows


LEAVING = 0.75  # copying the cache without rows that have ended pays when so few go on


class Growing(Protocol):
    """Outputs so far that grow by a piece in every row; `transformer.runs.decoding.Prefix` is one."""

    ids: Tensor  # what was read and written so far [B, T]
    log_sums: Tensor  # logits minus what `next_log_probs` returned [B]

    def next_log_probs(self) -> Tensor:
        """Log-probabilities of the next piece [B, V], or logits if `log_sums` are 0."""

    def append(self, ids: Tensor) -> None:
        """Add one piece to every row; ids [B]."""

    def select(self, rows: Tensor) -> None:
        """Keep the given rows (int [rows]), in the given order."""


class DecodedRow:
    """One output while it is written; `begun` is what the prefix holds of it already."""

    def __init__(self, config: ModelConfig, query: Query, source: Source, begun: Sequence[int] = ()) -> None:
        self.ids = list(begun)
        self._forced, self._how = source.forced, query.decoding
        self.rules = rules_for(config, query, source)
        self.most = self.rules.most
        if isinstance(self._how, Sampling):
            self._generator = torch.Generator().manual_seed(self._how.seed)
            for _ in begun:  # what was drawn for them
                torch.empty(config.tgt_vocab_size).exponential_(1, generator=self._generator)

    def extend(self, scores: Tensor, best: int) -> int:
        """Choose a piece, given what a choice goes by [V] and the best piece."""
        how = self._how
        if isinstance(how, Sampling):
            probs = sampling_distribution(scores, how)
            best = int(race(probs, self._generator).argmax())  # drawn at a forced step as well
        self.ids.append(self._forced[len(self.ids)] if len(self.ids) < len(self._forced) else best)
        return self.ids[-1]

    def ended(self, end_ids: Sequence[int]) -> bool:
        """Whether it has written its last piece."""
        return self.ids[-1] in end_ids or len(self.ids) == self.most


def write_rows(
    prefix: Growing,
    config: ModelConfig,
    rows: Sequence[DecodedRow],
    pause: Callable[[], None],
    *,
    leaving: float = LEAVING,
) -> list[tuple[int, ...]]:
    """Write every row to its end; a QueryError if rules close all pieces.

    Rows that have ended leave the batch when no more than this share of it goes on.
    """
    here = list(rows)  # those that still have a row in the batch
    over = [False] * len(here)
    while True:
        log_probs = prefix.next_log_probs().cpu()  # [rows here, V]
        rules = [row.rules for row in here]
        scores = scores_of(log_probs, prefix.ids, prefix.log_sums, rules)
        if any(one.any for one in rules):
            check_open(scores)
        best = scores.numpy().argmax(axis=-1).tolist()  # ten times as fast as torch
        ids = [
            config.eos_id if done else row.extend(scores[place], best[place])
            for place, (row, done) in enumerate(zip(here, over, strict=True))
        ]
        over = [done or row.ended(config.end_ids) for row, done in zip(here, over, strict=True)]
        if all(over):
            return [tuple(row.ids) for row in rows]
        prefix.append(torch.tensor(ids))
        staying = [place for place, done in enumerate(over) if not done]
        if len(staying) <= leaving * len(here):
            prefix.select(torch.tensor(staying))
            here, over = [here[place] for place in staying], [False] * len(staying)
        pause()
