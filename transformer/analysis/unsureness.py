"""How unsure a model was of the next piece, by measures that a long tail of small probabilities does not mislead.

The entropy of the whole distribution (`Trace.entropies`) counts every piece of the vocabulary. A model that was
trained with label smoothing leaves a share to all of them at every step, so that it stays high where it is sure.

Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), section 7: the smoothing.
"""

import numpy as np

N_BEST = 10
"""Pieces that `entropy_of_best` looks at."""


def other_share(log_probs: np.ndarray) -> np.ndarray:
    """1 - p of the likeliest piece: what all others have together [step], of log-probabilities [step, vocab]."""
    return np.asarray(1 - np.exp(np.minimum(log_probs.max(axis=-1).astype(np.float64), 0.0)))


def entropy_of_best(log_probs: np.ndarray, *, count: int = N_BEST) -> np.ndarray:
    """Entropy among the likeliest pieces, as if there were no others [step], in bits; log-probabilities as above."""
    best = min(count, log_probs.shape[-1])
    probs = np.exp(-np.partition(-log_probs, best - 1, axis=-1)[..., :best].astype(np.float64))  # [step, best]
    shares = probs / probs.sum(axis=-1, keepdims=True)
    return np.asarray(-(shares * np.log2(np.where(shares > 0, shares, 1.0))).sum(axis=-1) + 0.0)  # + 0: no -0


def entropy_of_smoothed(smoothing: float, n_pieces: int) -> float:
    """Entropy, in bits, of what training asks for that gives this share to all pieces alike, where one is right."""
    each = smoothing / n_pieces
    probs = np.full(n_pieces, each)
    probs[0] += 1 - smoothing
    return float(-(probs * np.log2(np.where(probs > 0, probs, 1.0))).sum() + 0.0)
