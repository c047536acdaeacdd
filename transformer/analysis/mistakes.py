"""One number for each way of wiring a Transformer wrongly: pure functions of what a pass recorded.

Source: Vaswani et al. (2017), section 3.2.1, footnote 4, for scores that grow with d; Dong, Cordonnier and Loukas,
"Attention is not all you need" (2021), section 2, for vectors that become alike without residual connections.

Shapes: H heads, Q queries, K keys, T tokens, D d_model.
"""

from collections.abc import Iterable

import numpy as np


def largest_weight(maps: Iterable[np.ndarray]) -> float:
    """The largest weight's share of its row, averaged over the rows with weight of maps [H, Q, K], 0 to 1."""
    rows = np.concatenate([one.reshape(-1, one.shape[-1]).max(axis=-1) for one in maps])
    rows = rows[rows > 0]
    return float(rows.mean()) if len(rows) else 0.0


def on_later(maps: Iterable[np.ndarray]) -> float:
    """The share of weight on later tokens in self-attention [H, T, T], averaged over rows with later tokens."""
    found = [np.triu(one, k=1).sum(axis=-1)[:, :-1].ravel() for one in maps]
    rows = np.concatenate(found) if found else np.zeros(0)
    return float(rows.mean()) if len(rows) else 0.0


def on_keys(maps: Iterable[np.ndarray], keys: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """The share of each row's weight on some keys, averaged over maps [H, Q, K] and their heads -> [Q]."""
    stacked = np.concatenate(list(maps))  # [maps * H, Q, K]
    found = stacked[:, :, keys].sum(axis=-1).mean(axis=0)
    return found if rows is None else found[rows]


def likeness(vectors: np.ndarray) -> float:
    """The mean cosine between the vectors [T, D] of any two tokens; 1 if there is one token."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    n = len(unit)
    return float(((unit @ unit.T).sum() - (unit * unit).sum()) / (n * (n - 1))) if n > 1 else 1.0
