"""The distribution of one step: how unsure it is, and how temperature, top-k and top-p change it.

Temperature divides all scores by one number, which keeps their order: the most probable piece stays first. Top-k and
top-p then cut off the least probable pieces, and the rest is scaled to sum to 1 again.

Shapes: V target vocabulary.

The entropy of the whole distribution (`Trace.entropies`) counts every piece of the vocabulary. A model trained with
label smoothing leaves a share to all pieces at every step, so the entropy stays high even where the model is sure.

Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), section 7: the smoothing.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.runs.distribution import sampling_distribution
from transformer.runs.query import Sampling


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
