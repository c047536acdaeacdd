"""Beam search of a batch: hypotheses, length penalty, forced pieces; what each round weighed, for a watcher.

Beam search keeps the few best partial outputs instead of one. Each round extends every open hypothesis by every piece,
keeps the `size` best and sets aside those that end. Hypotheses are compared by log-probability divided by a length
penalty, because every further piece makes a sequence less probable.

Source: Wu et al., "Google's Neural Machine Translation System" (2016), section 7, for the length penalty.

A sentence that no open hypothesis can improve any more leaves the batch; most finish long before the last one.

Shapes: B sentences that are still searched, K beams per sentence, V target vocabulary. The model sees B * K rows.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.runs.decoding import Prefix
from transformer.runs.distribution import Rules, scores_of


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that beam search found."""

    ids: tuple[int, ...]  # its pieces, the end piece included if it has ended
    log_prob: float  # its log-probability under the model, in nats
    # What hypotheses are ordered by: `log_prob`, lowered by a repetition penalty if there is one, divided by the
    # length penalty.
    score: float
    ended: bool  # whether it ends with the end piece; if not, the length limit cut it


Best = tuple[tuple[Hypothesis, ...], ...]
"""For each sentence its best hypotheses so far, open ones included, best first."""


@dataclass(frozen=True, eq=False)
class Weighed:
    """What one round compared, for a caller that watches the search."""

    index: int  # the round, from 0
    sentences: tuple[int, ...]  # which sentences of the batch its B rows are of
    log_probs: Tensor  # of the beams so far [B, K], in nats; -inf for one that is not open
    lowered: Tensor  # what rules add to them [B, K]
    pieces: Tensor  # the continuations of each beam that can be among the best [B, K, k]
    totals: Tensor  # what these are compared by [B, K, k]; -inf for one that is closed
    kept: Tensor  # places of the chosen ones among the K * k of their sentence [B, K], best first
    own: Tensor  # log-probabilities of all continuations [B, K, V]
    scores: Tensor  # the same as the rules leave them [B, K, V]


Watch = Callable[[Weighed], None]


def length_penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6) ^ alpha; 1 for every length when alpha is 0."""
    return math.pow((5 + length) / 6, alpha)


def beam_search(
    prefix: Prefix,
    *,
    size: int,
    alpha: float,
    max_new: int,
    forced: Sequence[Sequence[int]] | None = None,
    watch: Watch | None = None,
) -> Iterator[Best]:
    """Search each sentence of a batch, one row each of a new prefix: the best of each round; the last is the result.

    `size` is K, `alpha` the strength of the length penalty, `max_new` counts the end piece. Every hypothesis of a
    sentence begins with its forced pieces. `watch` is called with what each round compared, before the round ends.
    """
    beams = _Beams(prefix, size, alpha, max_new)
    for index in range(max_new):
        beams.extend(index, [ids[index : index + 1] for ids in forced] if forced else None, watch)
        yield beams.best()
        if beams.settled():
            return


class _Beams:
    """The open and the finished hypotheses of every sentence."""

    def __init__(self, prefix: Prefix, size: int, alpha: float, max_new: int) -> None:
        self.config = prefix.model.config
        self.rules = Rules(self.config, prefix.n_prompt, max_new, prefix.insisted)
        n_sentences = prefix.ids.size(0)
        self.size, self.alpha, self.max_new = size, alpha, max_new
        prefix.select(torch.arange(n_sentences).repeat_interleave(size))
        self.prefix = prefix
        self.searched = list(range(n_sentences))  # which sentence each K rows of the batch belong to
        # All beams of a sentence begin alike: only the first is open, or each continuation would occur K times. Summed
        # in float64: two continuations must not become equal by rounding.
        self.log_probs = torch.full((n_sentences, size), -torch.inf, dtype=torch.float64)  # [B, K]
        self.log_probs[:, 0] = 0.0
        self.lowered = torch.zeros_like(self.log_probs)  # what the rules add to them, 0 without a repetition penalty
        self.finished: list[list[Hypothesis]] = [[] for _ in range(n_sentences)]

    def extend(self, index: int, forced: list[Sequence[int]] | None, watch: Watch | None) -> None:
        """One round: every open hypothesis by one piece."""
        if bool((self.log_probs == -torch.inf).all()):
            return  # the model is not run on no rows at all
        n = len(self.searched)
        log_probs = self.prefix.next_log_probs().cpu()  # [B * K, V]
        untouched = log_probs if watch is None else log_probs.clone()  # bans are written into them
        rules = [self.rules] * len(log_probs)
        scores = scores_of(log_probs, self.prefix.ids, self.prefix.log_sums, rules)  # [B * K, V]
        scores, log_probs = (values.unflatten(0, (n, self.size)) for values in (scores, log_probs))  # [B, K, V]
        scores = _only(scores, log_probs, [forced[sentence] for sentence in self.searched] if forced else ())
        # No more than `size` continuations of one beam can be among the `size` best of its sentence.
        best, pieces = scores.topk(min(self.size, scores.size(-1)), dim=2)  # [B, K, k]
        own = log_probs.gather(2, pieces)  # [B, K, k]
        totals = self.log_probs[:, :, None] + self.lowered[:, :, None] + best  # [B, K, k]
        total, flat = totals.flatten(1).topk(self.size, dim=1)  # [B, K]
        if watch is not None:
            before = self.log_probs, self.lowered
            whole = untouched.unflatten(0, (n, self.size)), scores
            watch(Weighed(index, tuple(self.searched), *before, pieces, totals, flat, *whole))
        chosen = pieces.flatten(1).gather(1, flat)  # [B, K]
        beams = flat // pieces.size(2)  # [B, K]
        own = self.log_probs.gather(1, beams) + own.flatten(1).gather(1, flat)  # [B, K]
        own = own.masked_fill(total == -torch.inf, -torch.inf)
        rows = beams + torch.arange(n)[:, None] * self.size  # [B, K]
        self._move(rows, chosen, own, total - own)

    def _move(self, rows: Tensor, chosen: Tensor, log_probs: Tensor, lowered: Tensor) -> None:
        """Go on with these rows of the batch and these pieces, each [B, K]; settled sentences leave the batch."""
        kept = (self.log_probs > -torch.inf).any(dim=1)  # [B]
        self.searched = [sentence for sentence, keep in zip(self.searched, kept.tolist(), strict=True) if keep]
        self.log_probs, self.lowered, chosen = log_probs[kept], lowered[kept].nan_to_num(0.0), chosen[kept]
        self.prefix.select(rows[kept].flatten())
        self.prefix.append(chosen.flatten())
        ended = torch.isin(chosen, torch.tensor(self.config.end_ids))
        for row, beam in (ended & (self.log_probs > -torch.inf)).nonzero().tolist():
            self.finished[self.searched[row]].append(self._hypothesis(row, beam, ended=True))
        self.log_probs = self.log_probs.masked_fill(ended, -torch.inf)

    def best(self) -> Best:
        """For each sentence its best hypotheses, best first."""
        found = [list(finished) for finished in self.finished]
        for row, sentence in enumerate(self.searched):
            alive = (self.log_probs[row] > -torch.inf).nonzero()[:, 0].tolist()
            found[sentence] += [self._hypothesis(row, beam, ended=False) for beam in alive]
        return tuple(tuple(sorted(hypotheses, key=lambda h: -h.score)[: self.size]) for hypotheses in found)

    def settled(self) -> bool:
        """Whether no open hypothesis can enter the best of its sentence any more; those that cannot are closed."""
        for row, sentence in enumerate(self.searched):
            finished = self.finished[sentence]
            if len(finished) < self.size:
                continue
            worst = sorted(h.score for h in finished)[-self.size]
            # A log-probability only falls, and the longest sequence is divided by the most.
            bound = float((self.log_probs + self.lowered)[row].max()) / length_penalty(self.max_new, self.alpha)
            if bound <= worst and self.config.repetition_penalty >= 1.0:  # below 1 it may rise
                self.log_probs[row] = -torch.inf
        return bool((self.log_probs == -torch.inf).all())

    def _hypothesis(self, row: int, beam: int, *, ended: bool) -> Hypothesis:
        ids = tuple(self.prefix.written[row * self.size + beam].tolist())
        log_prob, lowered = float(self.log_probs[row, beam]), float(self.lowered[row, beam])
        return Hypothesis(ids, log_prob, (log_prob + lowered) / length_penalty(len(ids), self.alpha), ended)


def _only(scores: Tensor, log_probs: Tensor, forced: Sequence[Sequence[int]]) -> Tensor:
    """Close every continuation but the forced one, in the rows that have one this round."""
    for row, ids in enumerate(forced):
        for i in ids:
            kept = log_probs[row, :, i].clone()
            scores[row] = -torch.inf
            scores[row, :, i] = kept
    return scores
