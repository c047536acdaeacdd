"""How much each head writes: the length of its part in the output of its layer's attention.

Source: Kobayashi et al. (2020), "Attention is Not Only a Weight", section 2.

Shapes: L layers, H heads, Q queries, d d_head, D d_model.
"""

import numpy as np

from transformer.analysis import one_weight
from transformer.model.anatomy import Kind
from transformer.model.transformer import Transformer


def site(kind: Kind, layer: int) -> str:
    """The site of a layer's head outputs, as `transformer.tap.SITES` names it.

    Args:
        layer: From 0.
    """
    return f"{one_weight.place(kind, layer)}.heads"


def norm_share(heads: np.ndarray, projections: np.ndarray) -> np.ndarray:
    """Each head's share of what the layer's attention writes, by length: |head W_O| / sum over the layer's heads.

    The heads' vectors [L, H, Q, d] add up to the output (with its bias), but their lengths do not: vectors may
    cancel. A share [L, H, Q], 0 to 1, says how much a head writes, not how much of it remains; it is NaN if no head
    writes anything. The projections are those of `output_projections`.
    """
    norms = np.empty(heads.shape[:-1])  # [L, H, Q]
    for place in np.ndindex(heads.shape[:2]):  # what all heads write would be as large as a model
        written = np.asarray(heads[place], dtype=np.float64) @ np.asarray(projections[place], dtype=np.float64)
        norms[place] = np.linalg.norm(written, axis=-1)  # of [Q, D]
    total = norms.sum(axis=1, keepdims=True)
    return np.where(total == 0, np.nan, norms / np.where(total == 0, 1.0, total))


def output_projections(model: Transformer, kind: Kind, *, n_heads: int | None = None) -> np.ndarray:
    """The rows of every layer's W_O that belong to each head, float32 [L, H, d, D].

    The sum over heads of `head @ part`, plus the bias, is the attention's output. `n_heads` is the number of heads in
    a run that changed it.
    """
    attentions = model.attentions(kind)
    matrices = np.stack([attention.out_proj.weight.float().numpy(force=True) for attention in attentions])
    n_layers, d_model, joined = matrices.shape  # output = joined heads @ W^T
    n_heads = n_heads or attentions[0].n_heads
    return matrices.transpose(0, 2, 1).reshape(n_layers, n_heads, joined // n_heads, d_model)
