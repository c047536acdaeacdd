"""What is read off one step's distribution over the vocabulary, for the records of a trace.

Shapes: V target vocabulary.
"""

import numpy as np
import torch

from transformer.runs.decoding import sampling_distribution
from transformer.runs.query import Decoding, Sampling
from transformer.runs.step import RuleChange


def best(log_probs: np.ndarray, k: int) -> list[int]:
    """The k most probable ids of a distribution [V], best first, without sorting all of it."""
    least = -np.partition(-log_probs, k - 1)[k - 1] if k < len(log_probs) else -np.inf
    among = np.flatnonzero(log_probs >= least)
    order = np.argsort(-log_probs[among], kind="stable")[:k]
    return [int(i) for i in among[order]]


def entropy(log_probs: np.ndarray) -> float:
    """Entropy of one distribution [V] in bits, from 0; a piece of probability 0 adds nothing."""
    precise = log_probs.astype(np.float64)
    probs = np.exp(precise)
    return abs(float((probs * np.where(probs > 0, precise, 0.0)).sum()) / np.log(2))


def drawn_from(scores: np.ndarray, how: Decoding) -> np.ndarray | None:
    """The distribution [V] that sampling draws from, given what its choice goes by; None if nothing is drawn."""
    if not isinstance(how, Sampling):
        return None
    return sampling_distribution(
        torch.tensor(scores), temperature=how.temperature, top_k=how.top_k, top_p=how.top_p
    ).numpy()


def change(log_prob: float, score: float) -> RuleChange | None:
    """What the rules of a model made of a log-probability; None if nothing."""
    if score == log_prob:
        return None
    if score == -np.inf:
        return "closed"
    return "lowered" if score < log_prob else "raised"
