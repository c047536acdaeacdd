"""How unsure a model was of the next piece, by measures that ignore a long tail of small probabilities.

The entropy of the whole distribution (`Trace.entropies`) counts every piece of the vocabulary. A model trained with
label smoothing leaves a share to all pieces at every step, so the entropy stays high even where the model is sure.

Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision" (2016), section 7: the smoothing.
"""

import numpy as np

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
