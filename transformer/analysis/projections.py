"""Queries and keys as W_Q and W_K make them of what a sub-layer reads, before any norm or rotation.

Computed again in float64 for one weight of `transformer.analysis.one_weight`; the difference is part of the result.

Source: Vaswani et al. (2017), section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from transformer.analysis.one_weight import Walk, place
from transformer.model.anatomy import Kind, anatomy
from transformer.model.config import ModelConfig

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer


@dataclass(frozen=True, eq=False)
class Projection:
    """How a query or a key begins: W · x + b, for one token and head; arrays are float64."""

    x: np.ndarray  # what the sub-layer read of the token, or the memory's vector [d_model]
    matrix: np.ndarray  # the head's rows of W_Q or W_K [d_head, d_model]
    bias: np.ndarray  # b, 0 if there is none [d_head]
    difference: float  # the largest distance of W · x + b from what the model recorded

    @property
    def made(self) -> np.ndarray:
        """W · x + b [d_head]."""
        return np.asarray(self.matrix @ self.x + self.bias)


def _read(config: ModelConfig, kind: Kind, layer: int) -> tuple[str, str]:
    """The sites of what an attention makes queries of, and keys."""
    own = f"{place(kind, layer)}.norm"
    if config.norm == "post":  # what is after the sub-layer before
        one = anatomy(config).attention(kind)
        sublayers = anatomy(config).stack(one.stack).sublayers
        before = sublayers.index(one.sublayer) - 1
        own = f"{one.stack}.{layer - (before < 0)}.{sublayers[before]}.norm"
        own = own if before >= 0 or layer else f"{one.stack}.embedding.output"
    return own, "encoder.output" if kind == "cross" else own


def _made(config: ModelConfig, kind: Kind, layer: int, name: str) -> str:
    """The site of queries or keys as the matrix gives them."""
    turned = config.placing.adds == "turn" and kind != "cross" and layer not in config.unplaced_layers
    return f"{place(kind, layer)}.{'projected_' if config.qk_norm or turned else ''}{name}"


def projection_sites(config: ModelConfig, kind: Kind, layer: int) -> tuple[str, ...]:
    """The sites that `projected` needs, for `transformer.runs.running.replay`."""
    made = (_made(config, kind, layer, name) for name in ("queries", "keys"))
    return tuple(dict.fromkeys((*_read(config, kind, layer), *made)))


def projected(recorded: Mapping[str, np.ndarray], model: Transformer, found: Walk) -> tuple[Projection, Projection]:
    """How the query and the key of a walk begin; `recorded` has the values of `projection_sites`."""
    attention, (q_read, k_read) = (
        model.attentions(found.kind)[found.layer],
        _read(model.config, found.kind, found.layer),
    )
    group = found.head * attention.n_kv_heads // attention.n_heads
    asked = (
        (attention.q_proj, q_read, found.query, found.head, "queries"),
        (attention.k_proj, k_read, found.key, group, "keys"),
    )
    both = []
    for linear, read, token, head, name in asked:
        rows = slice(head * found.d_head, (head + 1) * found.d_head)
        matrix = linear.weight[rows].double().numpy(force=True)  # [d_head, d_model]
        bias = np.zeros(found.d_head) if linear.bias is None else linear.bias[rows].double().numpy(force=True)
        x = recorded[read][token].astype(np.float64)
        kept = recorded[_made(model.config, found.kind, found.layer, name)][head, token]  # [d_head]
        both.append(Projection(x, matrix, bias, float(np.abs(matrix @ x + bias - kept).max())))
    return both[0], both[1]
