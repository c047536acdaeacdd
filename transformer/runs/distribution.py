"""Logits and losses of pieces, numbers computed from distributions, and those from which sampling draws.

Logits are V wide, so they are computed a few rows at a time.

Shapes: N rows, n rows of one piece of work, D d_model, V target vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

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
