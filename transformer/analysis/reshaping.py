"""How temperature, top-k and top-p change the distribution of one step, before a piece is drawn.

Temperature divides all scores by one number, which keeps their order: the most probable piece stays first. Top-k and
top-p then cut off the least probable pieces, and the rest is scaled to sum to 1 again.

Shapes: V target vocabulary.
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
        by, k, p = settings.temperature, settings.top_k, settings.top_p
        return sampling_distribution(torch.tensor(scores), temperature=by, top_k=k, top_p=p).numpy()

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
