"""What temperature, top-k and top-p make of the distribution of one step, before a piece is drawn.

Temperature divides all scores by one number, which keeps their order: the likeliest piece stays the likeliest.
Top-k and top-p then cut the least likely away, and what is left is scaled to make 1 again.

Shapes: V target vocabulary.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer.runs.decoding import sampling_distribution
from transformer.runs.query import Sampling


@dataclass(frozen=True, eq=False)
class Reshaped:
    """The distributions of one step, each [V], float32.

    Attributes:
        raw: The model's own.
        tempered: After the rules of the model's config and the temperature.
        by_k: After top-k, too.
        cut: After top-p, too: what is drawn from.
        how: The settings.
    """

    raw: np.ndarray
    tempered: np.ndarray
    by_k: np.ndarray
    cut: np.ndarray
    how: Sampling


@dataclass(frozen=True)
class Spread:
    """How widely a distribution is spread.

    Attributes:
        entropy: In bits.
        left: Pieces with a probability above 0.
        best: The likeliest piece.
        top: Its probability.
    """

    entropy: float
    left: int
    best: int
    top: float


def reshaped(log_probs: np.ndarray, scores: np.ndarray, how: Sampling) -> Reshaped:
    """What sampling makes of one step.

    Args:
        log_probs: The model's own log-probabilities [V], in nats.
        scores: What a choice goes by [V]: the same as the rules of the model's config leave them (`Trace.scores_at`).
        how: The settings; their seed does not matter.
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
    """How widely a distribution [V] is spread."""
    there = probs[probs > 0].astype(np.float64)
    best = int(probs.argmax())
    return Spread(abs(float(-(there * np.log2(there)).sum())), len(there), best, float(probs[best]))
