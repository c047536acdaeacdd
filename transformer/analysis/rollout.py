"""Attention rollout: share of each input token in a token's vector, for one stack and for encoder-decoder.

Each layer mixes tokens by its attention, and its residual connection keeps the other half of a token in place, so a
layer's mixing is A' = ½ A + ½ I with A the mean over heads. The product of all layers' mixings says which input
tokens a vector came from, if only attention moved information.

A decoder layer also reads the source. A token's share of the output read so far, D, and of the source, C, are kept
separately. Self-attention mixes both, cross-attention brings in the encoder's rollout E:

    D <- A' D,  C <- A' C        self-attention
    D <- ½ D,   C <- ½ C + ½ X E     cross-attention X, mean over heads

Rows of D and C together sum to 1. After l layers D holds ½^l and C the other 1 - ½^l, in every row. Each is divided
by that constant, so its rows sum to 1; D is then the product of the self-attentions alone.

It ignores value vectors, norms and feed-forward layers. It traces weights, not causes.

Source: Abnar and Zuidema, "Quantifying Attention Flow in Transformers" (2020), section 3, equation 1. The paper has
one stack; source and target side by side follow Ferrando et al., "Towards Opening the Black Box of Neural Machine
Translation" (2022), section 3.3, with attention instead of their contributions.

Shapes: L layers, H heads, T output tokens, S source tokens.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def self_rollout(weights: Floats) -> Floats:
    """Roll out one stack's self-attention [L, H, T, T], from the lowest layer to the chosen one.

    [T, T], 0 to 1: the share of each input token (column) in each token's vector (row); rows sum to 1.
    """
    n = weights.shape[-1]
    if weights.ndim != 4 or not len(weights) or weights.shape[-2] != n:
        raise ValueError(f"rollout needs self-attention [layer, head, token, token]; found {weights.shape}.")
    rolled = np.eye(n)
    for layer in weights:
        rolled = _mixing(layer) @ rolled
    return rolled


def cross_rollout(encoder: Floats, decoder: Floats, cross: Floats) -> Floats:
    """Roll out a decoder's information from the source: each source token's share of it [T, S].

    It needs all layers of the encoder [L, H, S, S], and those of the decoder up to the chosen one, [L, H, T, T] and
    [L, H, T, S]. Rows sum to 1.
    """
    if len(decoder) != len(cross) or not len(cross):
        raise ValueError(f"{len(decoder)} layers of self-attention and {len(cross)} of cross-attention: give as many.")
    memory = self_rollout(encoder)  # [S, S]
    source = np.zeros(cross.shape[2:])  # [T, S]
    for layer, reading in zip(decoder, cross, strict=True):
        source = 0.5 * _mixing(layer) @ source + 0.5 * _mean(reading) @ memory
    return np.asarray(source / (1 - 0.5 ** len(cross)))


def _mixing(layer: Floats) -> Floats:
    """½ A + ½ I of one layer [H, T, T] -> [T, T]; its rows sum to 1 as those of A do."""
    return 0.5 * _mean(layer) + 0.5 * np.eye(layer.shape[-1])


def _mean(layer: Floats) -> Floats:
    """The mean over heads [H, query, key] -> [query, key], each row brought back to a sum of exactly 1."""
    mean = layer.mean(axis=0, dtype=np.float64)
    return np.asarray(mean / mean.sum(axis=-1, keepdims=True))
