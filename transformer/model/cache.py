"""The KV cache: keys and values that earlier decoding steps have computed.

Under a causal mask the keys and values of a token never change, so a decoding step only computes those of its own
token. The cache is an argument of the call, never a part of the model.

Shapes: B batch, H heads, K keys, d d_head.
"""

from dataclasses import dataclass

from torch import Tensor

ROOM = 32  # tokens that a growing cache has room for at first; doubled whenever it is full


@dataclass
class AttentionCache:
    """Keys and values of one attention."""

    fixed: bool  # True for cross-attention, whose keys and values are those of the source: computed once
    # [B, H, room, d], of which the first `length` tokens are filled; None before the first call.
    keys: Tensor | None = None
    values: Tensor | None = None  # the same
    length: int = 0  # tokens so far

    @property
    def complete(self) -> bool:
        """Whether every key and value has been computed."""
        return self.fixed and self.keys is not None

    def read(self) -> tuple[Tensor, Tensor]:
        """All keys and values so far, each [B, H, K, d]."""
        if self.keys is None or self.values is None:
            raise RuntimeError("the cache was read before anything was written to it")
        if self.fixed:
            return self.keys, self.values
        return self.keys.narrow(2, 0, self.length), self.values.narrow(2, 0, self.length)

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append those of the new tokens and return all of them, each [B, H, K, d]."""
        past, self.length = self.length, self.length + keys.size(2)
        if self.fixed:
            self.keys, self.values = keys, values
        else:
            self.keys = _with_room(self.keys, keys, past=past)
            self.values = _with_room(self.values, values, past=past)
            self.keys.narrow(2, past, keys.size(2)).copy_(keys)
            self.values.narrow(2, past, keys.size(2)).copy_(values)
        return self.read()

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch, in the given order."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[rows], self.values[rows]


def _with_room(stored: Tensor | None, new: Tensor, *, past: int) -> Tensor:
    """`stored`, or a larger copy of it if the new tokens do not fit: appending copies only what is new."""
    n_rows, n_heads, n_new, d_head = new.shape
    if stored is not None and past + n_new <= stored.size(2):
        return stored
    larger = new.new_empty(n_rows, n_heads, max(ROOM, 2 * past, past + n_new), d_head)
    if stored is not None:
        larger[:, :, :past] = stored[:, :, :past]
    return larger


class KVCache:
    """The caches of all decoder layers, and the number of target tokens in them."""

    def __init__(self, n_layers: int) -> None:
        self.self_attn = [AttentionCache(fixed=False) for _ in range(n_layers)]
        self.cross_attn = [AttentionCache(fixed=True) for _ in range(n_layers)]
        self.length = 0

    def select(self, rows: Tensor) -> None:
        """Keep the given rows of the batch (int [rows]), in the given order: beams move, finished rows leave."""
        for cache in (*self.self_attn, *self.cross_attn):
            cache.select(rows)
