"""Distributions of the next token: logits, losses, sampling (top-k, top-p), rules as logits processors.

Logits are V wide, so they are computed a few rows at a time.

Temperature divides all scores by one number, which keeps their order: the most probable piece stays first. Top-k and
top-p then cut off the least probable pieces, and the rest is scaled to sum to 1 again. The entropy of the whole
distribution (`Trace.entropies`) counts every piece of the vocabulary: a model trained with label smoothing (Szegedy et
al., "Rethinking the Inception Architecture for Computer Vision", 2016, section 7) leaves a share to all pieces at every
step, so the entropy stays high even where the model is sure.

A rule of a config (banned ids, n-grams, lengths) closes pieces or changes their scores. It never changes the model's
own log-probabilities, which a run keeps separately. The rules apply in this order, each to what the one before made:

    repetition penalty   logit z of a piece that is in the text: z / c above 0, z c below
    runs of n pieces     a piece is closed if it would complete one that is in the text
    banned               ids, and the last id of a run if the text ends with the others
    too short            the ends are closed
    the last place       all but the forced end are closed
    insisted             if a change of the run insists on a piece, all others are closed

Source: `transformer.model.config_fields` names it; the order is that of transformers 5.23, whose greedy outputs the
tests compare.

Shapes: N rows, n rows of one piece of work, D d_model, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

from transformer.errors import QueryError
from transformer.model.config import ModelConfig
from transformer.model.taps import NO_TAP, Tap
from transformer.runs.query import Decoding, Sampling

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

RuleChange = Literal["closed", "lowered", "raised"]


def best(log_probs: np.ndarray, k: int) -> list[int]:
    """The k most probable ids of a distribution [V], best first, without sorting all of it."""
    least = -np.partition(-log_probs, k - 1)[k - 1] if k < len(log_probs) else -np.inf
    among = np.flatnonzero(log_probs >= least)
    order = np.argsort(-log_probs[among], kind="stable")[:k]
    return [int(i) for i in among[order]]


def entropy(log_probs: np.ndarray) -> float:
    """Entropy of one distribution [V] in bits, at least 0; a piece of probability 0 adds nothing."""
    precise = log_probs.astype(np.float64)
    probs = np.exp(precise)
    return abs(float((probs * np.where(probs > 0, precise, 0.0)).sum()) / np.log(2))


def drawn_from(scores: np.ndarray, how: Decoding) -> np.ndarray | None:
    """The distribution [V] that sampling draws from, computed from the step's scores; None if nothing is drawn."""
    if not isinstance(how, Sampling):
        return None
    return sampling_distribution(torch.tensor(scores), how).numpy()


def change(log_prob: float, score: float) -> RuleChange | None:
    """How a model's rules changed a log-probability: closed, lowered or raised; None if they did not."""
    if score == log_prob:
        return None
    if score == -np.inf:
        return "closed"
    return "lowered" if score < log_prob else "raised"


def sampling_distribution(log_probs: Tensor, how: Sampling) -> Tensor:
    """The distribution that sampling draws from, computed from log-probabilities [..., V].

    A temperature below 1 sharpens, above 1 flattens. Top-k then keeps only the k most probable pieces (0: all). Of
    these, top-p keeps only the fewest whose probabilities together reach p (1: all).

    Source: Holtzman et al., "The Curious Case of Neural Text Degeneration" (2020) for top-p.
    """
    probs = (log_probs / how.temperature).softmax(dim=-1)
    if not how.top_k and how.top_p >= 1.0:
        return probs / probs.sum(dim=-1, keepdim=True)  # what follows would change nothing, and sort 5,000 pieces
    ordered, order = probs.sort(dim=-1, descending=True, stable=True)
    if how.top_k:
        ordered[..., how.top_k :] = 0.0
        ordered = ordered / ordered.sum(dim=-1, keepdim=True)
    if how.top_p < 1.0:  # at 1 rounding must not cost the last pieces their place
        before = ordered.cumsum(dim=-1) - ordered  # what the more probable pieces have together
        ordered = ordered.masked_fill((before >= how.top_p) & (before > 0), 0.0)
    kept = torch.zeros_like(probs).scatter(-1, order, ordered)
    return kept / kept.sum(dim=-1, keepdim=True)


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The distributions of one step, each [V], float32."""

    raw: np.ndarray  # the model's own
    tempered: np.ndarray  # after the rules of the model's config and the temperature
    by_k: np.ndarray  # after top-k, too
    cut: np.ndarray  # after top-p, too: what is drawn from
    how: Sampling  # the settings


@dataclass(frozen=True)
class Spread:
    """How spread out a distribution is."""

    entropy: float  # in bits
    left: int  # pieces with a probability above 0
    best: int  # the most probable piece
    top: float  # its probability


def reshaped(log_probs: np.ndarray, scores: np.ndarray, how: Sampling) -> Reshaped:
    """What sampling makes of one step, from the model's log-probabilities [V] and the scores of the choice [V].

    The scores are the log-probabilities after the rules of the model's config (`Trace.scores_at`); the seed does not
    matter.
    """

    def made(settings: Sampling) -> np.ndarray:
        return sampling_distribution(torch.tensor(scores), settings).numpy()

    return Reshaped(
        raw=np.exp(log_probs),
        tempered=made(replace(how, top_k=0, top_p=1.0)),
        by_k=made(replace(how, top_p=1.0)),
        cut=made(how),
        how=how,
    )


def spread(probs: np.ndarray) -> Spread:
    """How spread out a distribution [V] is."""
    there = probs[probs > 0].astype(np.float64)
    best = int(probs.argmax())
    return Spread(abs(float(-(there * np.log2(there)).sum())), len(there), best, float(probs[best]))


N_BEST = 10
"""Pieces that `entropy_of_best` looks at."""


def other_share(log_probs: np.ndarray) -> np.ndarray:
    """1 - p of the most probable piece: the share of all others [step], from log-probabilities [step, vocab]."""
    return np.asarray(1 - np.exp(np.minimum(log_probs.max(axis=-1).astype(np.float64), 0.0)))


def entropy_of_best(log_probs: np.ndarray, *, count: int = N_BEST) -> np.ndarray:
    """Entropy among the most probable pieces, as if there were no others [step], in bits, from log-probabilities."""
    best = min(count, log_probs.shape[-1])
    probs = np.exp(-np.partition(-log_probs, best - 1, axis=-1)[..., :best].astype(np.float64))  # [step, best]
    shares = probs / probs.sum(axis=-1, keepdims=True)
    return np.asarray(-(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1) + 0.0)  # + 0: no -0


def entropy_of_smoothed(smoothing: float, n_pieces: int) -> float:
    """Entropy, in bits, of a training target with this share spread evenly over all pieces and the rest on one."""
    each = smoothing / n_pieces
    probs = np.full(n_pieces, each)
    probs[0] += 1 - smoothing
    return float(-(probs * np.log2(np.where(probs > 0, probs, 1.0))).sum() + 0.0)


def race(probs: Tensor, generator: torch.Generator) -> Tensor:
    """The scores of one draw [V]: the piece with the highest is drawn, with the probability of the piece.

    A piece of probability p arrives after a random time with mean 1 / p, exponentially distributed; the first wins.
    `torch.multinomial` draws in the same way; here the scores also show how close the second was.
    """
    return probs / torch.empty_like(probs).exponential_(1, generator=generator)


def ranks_of(log_probs: Tensor, ids: Tensor) -> Tensor:
    """The rank of a piece [n] among all pieces of its row [n, V], 1 for the most probable; ties go by id."""
    ids = ids.to(log_probs.device)
    own = log_probs.gather(1, ids[:, None])  # [n, 1]
    before = torch.arange(log_probs.size(1), device=ids.device) < ids[:, None]
    return (log_probs > own).sum(dim=1) + ((log_probs == own) & before).sum(dim=1) + 1


ROWS = 256


def logits_of(model: Transformer, hidden: Tensor, *, tap: Tap = NO_TAP) -> Iterator[Tensor]:
    """The logits of a few rows at a time [n, V], float32 at least, from the vectors before the output [N, D]."""
    precise = torch.promote_types(hidden.dtype, torch.float32)
    for rows in hidden.split(ROWS):
        yield model.project(rows[None], tap=tap)[0].to(precise)


def losses_of(model: Transformer, hidden: Tensor, wanted: Tensor) -> Tensor:
    """Loss of each piece [N] in nats, on the processor, from the vectors before the output [N, D] and the ids [N]."""
    parts = zip(logits_of(model, hidden), wanted.to(model.device).split(ROWS), strict=True)
    return torch.cat([-logits.log_softmax(dim=-1).gather(1, ids[:, None])[:, 0] for logits, ids in parts]).cpu()


def ban(log_probs: Tensor, ids: Sequence[int]) -> Tensor:
    """Close pieces that are never written, in place: [..., V] with -inf at each of `ids`."""
    if ids:
        log_probs[..., list(ids)] = -torch.inf
    return log_probs


@dataclass(frozen=True)
class Rules:
    """The rules of one output."""

    config: ModelConfig  # of the model
    n_prompt: int  # tokens before the output: the start piece, or the prompt
    most: int  # most pieces that can be written
    # Pieces that a change of the run insists on, by their places in the output, from 0.
    insisted: Mapping[int, int] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether a choice depends on the text before it, or on its place."""
        return self.config.has_rules or bool(self.insisted)

    def scores(self, log_probs: Tensor, text: Sequence[int], log_sum: float) -> Tensor:
        """The scores of a choice [V]: the model's own log-probabilities, some lowered, and -inf for a closed piece.

        Their probabilities need not sum to 1. The text is the start piece or the prompt, then the output so far;
        `log_sum` is logits minus log-probabilities.
        """
        config, own = self.config, log_probs.clone()
        if config.repetition_penalty != 1.0:
            there, penalty = sorted(set(text)), config.repetition_penalty
            logits = own[there] + log_sum
            own[there] = torch.where(logits < 0, logits * penalty, logits / penalty) - log_sum
        ban(own, [*config.never_written, *self._closed(text)])
        only = self.only_at(len(text) - self.n_prompt)
        if only is not None:
            own.fill_(-torch.inf)[only] = log_probs[only]
        return own

    def all_scores(self, log_probs: Tensor, text: Sequence[int], log_sums: Tensor) -> Tensor:
        """The same for every step of an output [T, V], by what the model computed over the whole text."""
        if not self.any:
            return ban(log_probs.clone(), self.config.never_written)
        rows = [
            self.scores(row, text[: self.n_prompt + step], float(log_sum))
            for step, (row, log_sum) in enumerate(zip(log_probs, log_sums, strict=True))
        ]
        return torch.stack(rows) if rows else log_probs

    def only_at(self, place: int) -> int | None:
        """The only piece that can be chosen at a place of the output, from 0: one insisted on, or the forced end."""
        if place in self.insisted:
            return self.insisted[place]
        return self.config.forced_end_id if place == self.most - 1 else None

    def _closed(self, text: Sequence[int]) -> Iterator[int]:
        config, written = self.config, len(text) - self.n_prompt
        if config.no_repeat_ngram:
            yield from _repeating(text, config.no_repeat_ngram)
        for sequence in config.banned_sequences:
            before = len(sequence) - 1
            if text[-1] == sequence[-2] and tuple(text[-before:]) == sequence[:-1]:
                yield sequence[-1]
        if len(text) < config.min_length or written < config.min_new:
            yield from config.end_ids
        if written == len(config.forced_ids):
            yield from config.first_banned_ids


def _repeating(text: Sequence[int], n: int) -> Iterator[int]:
    """The pieces that would complete a run of n that the text already has."""
    before = tuple(text[len(text) - n + 1 :])
    for start in range(len(text) - n + 1):
        if tuple(text[start : start + n - 1]) == before:
            yield text[start + n - 1]


def scores_of(log_probs: Tensor, texts: Tensor, log_sums: Tensor, rules: Sequence[Rules]) -> Tensor:
    """The scores of a batch's choices [B, V]; if only ids are banned, the log-probabilities, changed in place."""
    if not any(rule.any for rule in rules):
        return ban(log_probs, rules[0].config.never_written)
    rows = zip(log_probs, texts.tolist(), log_sums.tolist(), rules, strict=True)
    return torch.stack([rule.scores(row, text, log_sum) for row, text, log_sum, rule in rows])


def check_open(scores: Tensor) -> Tensor:
    """Check that every row [B, V] has a piece left to choose; a QueryError if all pieces of a row are closed."""
    if bool((scores.amax(dim=-1) == -torch.inf).any()):
        raise QueryError(
            "At one step, the rules in this model's config (no_repeat_ngram, banned_ids, min_length and others) "
            "rule out every token, so none can be chosen. Lower the maximum output length, or change the rules in "
            "config.json."
        )
    return scores
