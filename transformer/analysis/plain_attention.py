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
from torch import Tensor

from transformer.model.anatomy import EVERY_PART, Kind, StackName
from transformer.model.module import widened

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


def plain_weights(queries: np.ndarray, keys: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """softmax(queries · keysᵀ) over the open keys, bool [query, key]; a row without any is all 0."""
    scores = np.where(allowed, queries @ keys.T, -np.inf)  # [query, key]
    exps = np.exp(scores - np.maximum(scores.max(axis=-1, keepdims=True), np.finfo(np.float64).min))
    return np.asarray(exps / np.maximum(exps.sum(axis=-1, keepdims=True), np.finfo(np.float64).tiny))


def without_parameters(
    model: Transformer, kind: Kind, query_ids: Sequence[int], key_ids: Sequence[int], allowed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """An attention's weights by embeddings alone [query, key]: of rows of the table, and of rows times √d_model."""
    tables: dict[StackName, Tensor] = {"encoder": model.src_table, "decoder": model.target_table}
    asked = (EVERY_PART.attention(kind).stack, query_ids), (EVERY_PART.attention(kind).keys_from, key_ids)
    a, b = (widened(tables[stack][list(ids)]).double().numpy(force=True) for stack, ids in asked)  # [token, d_model]
    root = model.config.d_model**0.5
    return plain_weights(a, b, allowed), plain_weights(root * a, root * b, allowed)
