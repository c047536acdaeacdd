"""What heads do at GPT-2's size: measures of a few rows at a time, against float64 copies of all maps at once.

    python -m benchmarks.head_measures --layers 4 --runs 3

Made-up causal maps of 12 heads and 1,000 tokens, and the heads' vectors; layer by layer, as on the page. Both ways
run in turns in one process on one thread, and their numbers are compared to the last bit.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from transformer.analysis.head_statistics import Name, measure_maps, norm_share

HEADS, TOKENS, D_HEAD = 12, 1000, 64
Layer = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Maps [1, H, Q, Q], what the heads give [1, H, Q, d] and their rows of W_O [1, H, d, D]."""


def made_up(n_layers: int) -> list[Layer]:
    """Layers with causal maps, each row of which adds up to 1."""
    random = np.random.default_rng(0)
    causal = np.tril(np.ones((TOKENS, TOKENS), bool))
    layers = []
    for _ in range(n_layers):
        weights = np.where(causal, random.random((1, HEADS, TOKENS, TOKENS), dtype=np.float32) ** 8 + 1e-6, 0)
        weights /= weights.sum(axis=-1, keepdims=True)
        heads = random.standard_normal((1, HEADS, TOKENS, D_HEAD), dtype=np.float32)
        parts = random.standard_normal((1, HEADS, D_HEAD, HEADS * D_HEAD), dtype=np.float32)
        layers.append((weights, heads, parts))
    return layers


def by_rows(layer: Layer) -> dict[Name, np.ndarray]:
    """As it is."""
    weights, heads, parts = layer
    allowed = np.tril(np.ones((TOKENS, TOKENS), bool))
    found = measure_maps(weights, allowed, "decoder", shares=norm_share(heads, parts))
    return {name: one.values for name, one in found.items()}


def at_once(layer: Layer) -> dict[Name, np.ndarray]:
    """As it was: every measure makes its own copy of all maps in float64, and the entropy is computed twice."""
    weights, heads, parts = layer
    allowed = np.tril(np.ones((TOKENS, TOKENS), bool))
    rows = np.arange(TOKENS)

    def entropy() -> np.ndarray:
        precise = np.asarray(weights, dtype=np.float64)
        return np.abs((precise * np.log2(np.where(precise > 0, precise, 1.0))).sum(axis=-1))

    def share(offset: int) -> np.ndarray:
        keys = np.clip(rows + offset, 0, TOKENS - 1)
        there = (rows + offset == keys) & allowed[rows, keys]
        return np.where(there, np.asarray(weights, dtype=np.float64)[..., rows, keys], np.nan)

    n_open = allowed.sum(axis=-1)
    written = np.asarray(heads, dtype=np.float64) @ np.asarray(parts, dtype=np.float64)
    norms = np.linalg.norm(written, axis=-1)
    apart = np.abs(rows[:, None] - rows[None, :])
    found: dict[Name, np.ndarray] = {
        "entropy": entropy(),
        "entropy_share": np.where(n_open >= 2, entropy() / np.log2(np.maximum(n_open, 2)), np.nan),
        "largest": np.asarray(weights, dtype=np.float64).max(axis=-1),
        "distance": (np.asarray(weights, dtype=np.float64) * apart).sum(axis=-1),
        "self": share(0),
        "previous": share(-1),
        "first": np.where(allowed[:, 0], np.asarray(weights, dtype=np.float64)[..., 0], np.nan),
        "norm_share": norms / norms.sum(axis=1, keepdims=True),
    }
    share(1)  # the next token, which is closed everywhere and so left out
    return found


def seconds(way: Callable[[Layer], dict[Name, np.ndarray]], layers: list[Layer]) -> float:
    """CPU time of all layers."""
    began = time.process_time()
    for layer in layers:
        way(layer)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=4, help="layers of 12 heads")
    parser.add_argument("--runs", type=int, default=3, help="turns of each way")
    given = parser.parse_args()
    torch.set_num_threads(1)
    layers = made_up(given.layers)
    new, old = by_rows(layers[0]), at_once(layers[0])
    assert list(new) == list(old), (list(new), list(old))
    for name, values in new.items():
        np.testing.assert_array_equal(values, old[name], err_msg=name)
    times = [(seconds(at_once, layers), seconds(by_rows, layers)) for _ in range(given.runs)]
    before, after = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{given.layers} layers, {HEADS} heads, {TOKENS:,} tokens; CPU seconds, median of {given.runs}")
    print(f"all maps at once   {before:6.2f}")
    print(f"a few rows at once {after:6.2f}")
    print(f"ratio              {before / after:6.2f}; the numbers are equal to the last bit")


if __name__ == "__main__":
    main()
