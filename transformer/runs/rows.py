"""Rows of a batch that are decoded together, each with its own forced pieces, rules, seed and limit.

Shapes: B rows, T tokens, V target vocabulary.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.runs.distribution import race, sampling_distribution
from transformer.runs.query import Query, Sampling
from transformer.runs.rules import check_open, scores_of
from transformer.runs.source import Source, rules_for

_LEAVING = 0.75  # copying the cache without rows that have ended pays when so few go on


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


class Row:
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
            probs = sampling_distribution(scores, temperature=how.temperature, top_k=how.top_k, top_p=how.top_p)
            best = int(race(probs, self._generator).argmax())  # drawn at a forced step as well
        self.ids.append(self._forced[len(self.ids)] if len(self.ids) < len(self._forced) else best)
        return self.ids[-1]

    def ended(self, end_ids: Sequence[int]) -> bool:
        """Whether it has written its last piece."""
        return self.ids[-1] in end_ids or len(self.ids) == self.most


def write_rows(
    prefix: Growing, config: ModelConfig, rows: Sequence[Row], pause: Callable[[], None]
) -> list[tuple[int, ...]]:
    """Write every row to its end; those that have ended leave the batch. A QueryError if rules close all pieces."""
    here = list(rows)  # those that still have a row in the batch
    over = [False] * len(here)
    while True:
        log_probs = prefix.next_log_probs().cpu()  # [rows here, V]
        scores = scores_of(log_probs, prefix.ids, prefix.log_sums, [row.rules for row in here])
        if here[0].rules.any:
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
        if len(staying) <= _LEAVING * len(here):
            prefix.select(torch.tensor(staying))
            here, over = [here[place] for place in staying], [False] * len(staying)
        pause()
