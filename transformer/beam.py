"""Beam search: keep the few best beginnings instead of one.

Each round extends every beginning that is still open by every piece, keeps the `size` best of them and sets aside
those that end. Hypotheses are compared by log-probability divided by a length penalty, because every further piece
makes a sequence less probable.

Source: Wu et al., "Google's Neural Machine Translation System" (2016), section 7, for the length penalty.

Shapes: B sentences, K beams a sentence, V target vocabulary. The model sees B * K rows.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.decoding import Prefix


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that beam search found.

    Attributes:
        ids: Its pieces, the end piece included if it has ended.
        log_prob: Its log-probability under the model, in nats.
        score: `log_prob` divided by the length penalty; what hypotheses are ordered by.
        ended: Whether it ends with the end piece; if not, the length limit cut it.
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float
    ended: bool


@dataclass(frozen=True)
class BeamStep:
    """One round of beam search.

    Attributes:
        index: The round, from 0.
        best: For each sentence its best hypotheses so far, open ones included, best first.
    """

    index: int
    best: tuple[tuple[Hypothesis, ...], ...]


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha; 1 for every length when alpha is 0."""
    return math.pow((5 + length) / 6, alpha)


def beam_search(
    prefix: Prefix, *, size: int, alpha: float, max_new: int, forced: Sequence[Sequence[int]] | None = None
) -> Iterator[BeamStep]:
    """Search each sentence of a batch; the last step holds the result.

    Args:
        prefix: A new prefix, one row a sentence.
        size: Beams a sentence, K.
        alpha: Strength of the length penalty, 0 or more.
        max_new: Most pieces to write, the end piece included.
        forced: For each sentence the ids that every hypothesis must begin with.

    Yields:
        One `BeamStep` a round.
    """
    beams = _Beams(prefix, size, alpha, max_new)
    for index in range(max_new):
        beams.extend([list(ids[index : index + 1]) for ids in forced] if forced else None)
        yield BeamStep(index, beams.best())
        if beams.settled():
            return


class _Beams:
    """The open and the finished hypotheses of every sentence."""

    def __init__(self, prefix: Prefix, size: int, alpha: float, max_new: int) -> None:
        self.config = prefix.model.config
        self.n_sentences = prefix.ids.size(0)
        self.size, self.alpha, self.max_new = size, alpha, max_new
        prefix.select(torch.arange(self.n_sentences).repeat_interleave(size))
        self.prefix = prefix
        # All beams of a sentence begin alike: only the first is open, or each continuation would stand K times.
        # Summed in float64: two continuations must not become equal by rounding.
        self.log_probs = torch.full((self.n_sentences, size), -torch.inf, dtype=torch.float64)  # [B, K]
        self.log_probs[:, 0] = 0.0
        self.finished: list[list[Hypothesis]] = [[] for _ in range(self.n_sentences)]

    def extend(self, forced: list[list[int]] | None) -> None:
        """One round: every open hypothesis by one piece."""
        log_probs = self.prefix.next_log_probs().cpu()  # [B * K, V]
        log_probs = log_probs.index_fill(1, torch.tensor([self.config.pad_id]), -torch.inf)
        log_probs = _only(log_probs.unflatten(0, (self.n_sentences, self.size)), forced)  # [B, K, V]
        # No more than `size` continuations of one beam can be among the `size` best of its sentence.
        log_probs, pieces = log_probs.topk(min(self.size, log_probs.size(-1)), dim=2)  # [B, K, k]
        total = (self.log_probs[:, :, None] + log_probs).flatten(1)  # [B, K * k]
        self.log_probs, flat = total.topk(self.size, dim=1)  # [B, K]
        chosen = pieces.flatten(1).gather(1, flat)  # [B, K]
        rows = flat // pieces.size(2) + torch.arange(self.n_sentences)[:, None] * self.size
        device = self.prefix.ids.device
        self.prefix.select(rows.flatten().to(device))
        self.prefix.append(chosen.flatten().to(device))
        self._set_aside(chosen == self.config.eos_id)

    def best(self) -> tuple[tuple[Hypothesis, ...], ...]:
        """For each sentence its best hypotheses, best first."""
        ranked = []
        for sentence, finished in enumerate(self.finished):
            found = [*finished, *self._open(sentence)]
            ranked.append(tuple(sorted(found, key=lambda h: -h.score)[: self.size]))
        return tuple(ranked)

    def settled(self) -> bool:
        """Whether no open hypothesis can enter the best of its sentence any more; those that cannot are closed."""
        for sentence, finished in enumerate(self.finished):
            if len(finished) < self.size:
                continue
            worst = sorted(h.score for h in finished)[-self.size]
            # A log-probability only falls, and the longest sequence is divided by the most.
            bound = float(self.log_probs[sentence].max()) / length_penalty(self.max_new, self.alpha)
            if bound <= worst:
                self.log_probs[sentence] = -torch.inf
        return bool((self.log_probs == -torch.inf).all())

    def _set_aside(self, ended: Tensor) -> None:
        for sentence, beam in (ended & (self.log_probs > -torch.inf)).nonzero().tolist():
            self.finished[sentence].append(self._hypothesis(sentence, beam, ended=True))
        self.log_probs = self.log_probs.masked_fill(ended, -torch.inf)

    def _open(self, sentence: int) -> list[Hypothesis]:
        alive = (self.log_probs[sentence] > -torch.inf).nonzero()[:, 0].tolist()
        return [self._hypothesis(sentence, beam, ended=False) for beam in alive]

    def _hypothesis(self, sentence: int, beam: int, *, ended: bool) -> Hypothesis:
        ids = tuple(self.prefix.ids[sentence * self.size + beam, 1:].tolist())
        log_prob = float(self.log_probs[sentence, beam])
        return Hypothesis(ids, log_prob, log_prob / length_penalty(len(ids), self.alpha), ended)


def _only(log_probs: Tensor, forced: list[list[int]] | None) -> Tensor:
    """Close every continuation but the forced one, in the sentences that have one this round."""
    for sentence, ids in enumerate(forced or ()):
        for i in ids:
            kept = log_probs[sentence, :, i].clone()
            log_probs[sentence] = -torch.inf
            log_probs[sentence, :, i] = kept
    return log_probs
