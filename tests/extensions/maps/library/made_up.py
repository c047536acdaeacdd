"""Maps out of nowhere, for tests: random weights whose rows sum to 1."""

import numpy as np

from transformer import GivenMaps, given_maps

SOURCE = ("[CLS]", "▁the", "▁cat", "s", "[SEP]")
TARGET = ("<s>", "▁die", "▁Katz", "en")


def weights(n_layers, n_heads, n_queries, n_keys, *, causal=False, seed=0):
    """Random weights [layer, head, query, key], float32."""
    found = np.random.default_rng(seed).random((n_layers, n_heads, n_queries, n_keys)) ** 3
    found = np.tril(found) if causal else found
    return (found / found.sum(axis=-1, keepdims=True)).astype(np.float32)


def all_three(**changes) -> GivenMaps:
    """Maps of all three attentions, whose stacks differ in layers and heads."""
    return given_maps(
        **{
            "encoder": weights(3, 4, 5, 5),
            "decoder": weights(2, 2, 4, 4, causal=True, seed=1),
            "cross": weights(2, 2, 4, 5, seed=2),
            "source": SOURCE,
            "target": TARGET,
            "special": ("[CLS]", "[SEP]", "<s>"),
            "checkpoint": "tiny-mt",
            "sentence": "the cats",
        }
        | changes
    )
