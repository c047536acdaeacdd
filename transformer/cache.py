"""The KV cache: keys and values that earlier decoding steps have computed already.

Under a causal mask the keys and values of a token never change once they are computed, so a decoding step only
computes those of its own token. The cache is an argument of the call, never a part of the model.

Shapes: B batch, H heads, K keys, d d_head.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class AttentionCache:
    """Keys and values of one attention.

    Attributes:
        fixed: True for cross-attention, whose keys and values are those of the source: computed once.
        keys: [B, H, K, d], None before the first call.
        values: [B, H, K, d], None before the first call.
    """

    fixed: bool
    keys: Tensor | None = None
    values: Tensor | None = None

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to compute."""
        return self.fixed and self.keys is not None

    def read(self) -> tuple[Tensor, Tensor]:
        """All keys and values so far, each [B, H, K, d]."""
        if self.keys is None or self.values is None:
            raise RuntimeError("the cache was read before anything was written to it")
        return self.keys, self.values

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append those of the new tokens and return all of them, each [B, H, K, d]."""
        if self.keys is not None and self.values is not None:
            keys = torch.cat((self.keys, keys), dim=2)
            values = torch.cat((self.values, values), dim=2)
        self.keys, self.values = keys, values
        return keys, values

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in the given order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


class KVCache:
    """The caches of all decoder layers, and how many target tokens they hold."""

    def __init__(self, n_layers: int) -> None:
        self.self_attn = [AttentionCache(fixed=False) for _ in range(n_layers)]
        self.cross_attn = [AttentionCache(fixed=True) for _ in range(n_layers)]
        self.length = 0

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch (int [rows]), in the given order: beams move, finished rows leave."""
        for cache in (*self.self_attn, *self.cross_attn):
            cache.select(rows)
