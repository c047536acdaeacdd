"""Attention without parameters: softmax(A·Aᵀ) of token embeddings, which trained heads can be compared with.

A has one row for each token: its row of the embedding table, before anything is added to it. Queries and keys are
these rows themselves, so there are no W_Q and W_K, no heads, no positions and no scale. A·Aᵀ is symmetric, and a row's
product with itself is its squared length: what a token looks for cannot differ from what it offers. Cross-attention has
two tables, A of the target and B of the source; their products A·Bᵀ were never trained to mean anything.

Source: Vaswani et al. (2017), section 3.2.1, for attention as a function of queries and keys; section 3.4 for √d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from transformer.model.anatomy import EVERY_PART, Kind, StackName
from transformer.model.module import rows_of

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


def embedding_rows(model: Transformer, stack: StackName, ids: Sequence[int]) -> np.ndarray:
    """The rows of a stack's embedding table [token, d_model], in float64, not scaled."""
    table = model.src_table if stack == "encoder" else model.target_table
    with torch.inference_mode():
        rows: np.ndarray = rows_of(table, torch.tensor(list(ids), device=table.device)).double().numpy(force=True)
    return rows


def plain_weights(queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """softmax(queries · keysᵀ) over the open keys, bool [query, key]; a row without any is all 0."""
    scores = np.where(allowed, queries @ keys.T, -np.inf)  # [query, key]
    peaks = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    exps = np.exp(scores - np.where(np.isneginf(peaks), 0.0, peaks))
    totals = exps.sum(axis=-1, keepdims=True)
    return np.divide(exps, totals, out=np.zeros_like(exps), where=totals > 0)


def without_parameters(
    model: Transformer, kind: Kind, query_ids: Sequence[int], key_ids: Sequence[int], allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """An attention's weights by embeddings alone [query, key]: of rows of the table, and of rows times √d_model."""
    of = EVERY_PART.attention(kind)
    a, b = embedding_rows(model, of.stack, query_ids), embedding_rows(model, of.keys_from, key_ids)  # [token, d_model]
    root = model.config.d_model**0.5
    return plain_weights(a, b, allowed), plain_weights(root * a, root * b, allowed)
