"""Attention without parameters, softmax(A·Aᵀ) of token embeddings, and the queries and keys of W_Q and W_K.

A has one row for each token: its row of the embedding table, before anything is added to it. Queries and keys are
these rows themselves, so there are no W_Q and W_K, no heads, no positions and no scale. A·Aᵀ is symmetric, and a row's
product with itself is its squared length: what a token looks for cannot differ from what it offers. Cross-attention has
two tables, A of the target and B of the source; their products A·Bᵀ were never trained to mean anything.

Source: Vaswani et al. (2017), section 3.2.1, for attention as a function of queries and keys; section 3.4 for √d_model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from transformer.analysis.one_weight import Walk, place
from transformer.model.anatomy import EVERY_PART, Kind, StackName, anatomy
from transformer.model.config import ModelConfig
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


@dataclass(frozen=True, eq=False)
class Projection:
    """How a query or a key begins: W · x + b, for one token and head; arrays are float64."""

    x: np.ndarray  # what the sub-layer read of the token, or the memory's vector [d_model]
    matrix: np.ndarray  # the head's rows of W_Q or W_K [d_head, d_model]
    bias: np.ndarray  # b, 0 if there is none [d_head]

    @property
    def made(self) -> np.ndarray:
        """W · x + b [d_head]: q or k, unless it is normed or turned."""
        return np.asarray(self.matrix @ self.x + self.bias)


def read_by(config: ModelConfig, kind: Kind, layer: int) -> tuple[str, str]:
    """The sites of what an attention makes queries of, and keys; for `projected`."""
    own, one = f"{place(kind, layer)}.norm", anatomy(config).attention(kind)
    if config.norm == "post":  # what is after the sub-layer before
        sublayers = anatomy(config).stack(one.stack).sublayers
        before = sublayers.index(one.sublayer) - 1
        own = f"{one.stack}.{layer - (before < 0)}.{sublayers[before]}.norm"
        own = own if before >= 0 or layer else f"{one.stack}.embedding.output"
    return own, "encoder.output" if kind == "cross" else own


def projected(recorded: Mapping[str, np.ndarray], model: Transformer, found: Walk) -> tuple[Projection, Projection]:
    """How the query and the key of a walk begin; `recorded` has the values of `read_by`."""
    attention, reads = model.attentions(found.kind)[found.layer], read_by(model.config, found.kind, found.layer)
    group = found.head * attention.n_kv_heads // attention.n_heads
    asked = (attention.q_proj, found.query, found.head), (attention.k_proj, found.key, group)
    both = []
    for read, (linear, token, head) in zip(reads, asked, strict=True):
        rows = slice(head * found.d_head, (head + 1) * found.d_head)
        bias = np.zeros(found.d_head) if linear.bias is None else linear.bias[rows].double().numpy(force=True)
        matrix = linear.weight[rows].double().numpy(force=True)  # [d_head, d_model]
        both.append(Projection(recorded[read][token].astype(np.float64), matrix, bias))
    return both[0], both[1]
