"""Tiled attention with an online softmax (as in FlashAttention), a KV cache in blocks, and the bytes of both.

**Tiles.** After each tile three things are kept: the largest score so far m, the sum l of exp(score - m), and the
sum o of exp(score - m) times the value. A larger m makes what was summed before too large by exp(m_new - m_old), so
it is multiplied by exp(m_old - m_new). In the end o / l is the head's output, as of a softmax over the whole row.

**Blocks**, of equal size, are taken one by one while texts grow, as virtual memory is in pages. A text's block table
names the block of each of its parts. Texts that begin alike share the blocks of what they have in common. When one of
them would write into a block that others hold, it gets a copy of its own (copy on write).

Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), algorithm 3; Dao et al.,
"FlashAttention" (2022), algorithm 1. As in FlashAttention-2 (Dao, 2023), o is divided once, at the end. Kwon et al.,
"Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023), sections 4.1 to 4.4.

Shapes: K keys, d d_head.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from transformer.errors import QueryError
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig

SCORE_BYTES = 4  # of a score in float32


@dataclass(frozen=True, eq=False)
class Tile:
    """What is kept after one tile of keys; arrays are float64."""

    first: int  # its first key, from 0
    end: int  # the key after its last
    n_open: int  # keys of it that may be attended to; a tile without any is skipped
    peak: float  # m, the largest score so far; -inf before the first open key
    factor: float  # exp(m_old - m_new), by which what was summed before is multiplied; 1 if m stays
    total: float  # l
    summed: np.ndarray  # o [d]

    @property
    def output(self) -> np.ndarray:
        """What the head's output would be if this tile were the last [d]; 0 before the first open key."""
        return self.summed / self.total if self.total else np.zeros_like(self.summed)


def tiles(scores: np.ndarray, values: np.ndarray, *, size: int) -> tuple[Tile, ...]:
    """Walk over a row of scores after the mask [K], -inf where it closes a key, with the keys' values [K, d]."""
    if size < 1:
        raise QueryError("a tile of {size} keys is empty; it must have at least one.", size=size)
    peak, total, summed = -np.inf, 0.0, np.zeros(values.shape[1])
    found = []
    for first in range(0, len(scores), size):
        part = scores[first : first + size].astype(np.float64)
        n_open, old, factor = int((part > -np.inf).sum()), peak, 1.0
        if n_open:
            peak = max(old, float(part.max()))
            factor = float(np.exp(old - peak))  # 0 at the first tile with an open key: nothing was summed before it
            exps = np.exp(part - peak)
            total = total * factor + float(exps.sum())
            summed = summed * factor + exps @ values[first : first + size]
        found.append(Tile(first, first + len(part), n_open, peak, factor, total, summed))
    return tuple(found)


def score_bytes(config: ModelConfig, n: int) -> int:
    """Bytes of all scores of one pass over texts of n tokens, float32; the weights take as many once more."""
    heads = (config.of(one.stack).n_heads * one.n_layers for one in anatomy(config).attentions)
    return sum(heads) * n * n * SCORE_BYTES


def kept_bytes(config: ModelConfig, n: int) -> int:
    """Bytes of m and l of every query of that pass, which tiles keep besides the output."""
    return 2 * score_bytes(config, n) // n


VALUE_BYTES = 4  # of a number of the cache in float32


@dataclass(frozen=True)
class Block:
    """One block of the cache."""

    first: int  # the place of its first token in its texts, from 0
    ids: tuple[int, ...]  # the tokens that it holds; the last block of a text may have room for more
    holders: tuple[int, ...]  # the texts that read it, from 0


def blocks(texts: Sequence[Sequence[int]], *, size: int) -> tuple[Block, ...]:
    """The blocks of some texts' tokens, in the order in which texts that grow side by side take them."""
    if size < 1:
        raise QueryError("a block of {size} tokens is empty; it must have room for at least one.", size=size)
    holders: dict[tuple[int, ...], list[int]] = {}
    for first in range(0, max(map(len, texts), default=0), size):
        for text, ids in enumerate(texts):
            if first < len(ids):  # what is read in a block depends on all before it
                holders.setdefault(tuple(ids[: first + size]), []).append(text)
    starts = {begun: (len(begun) - 1) // size * size for begun in holders}
    return tuple(Block(starts[begun], begun[starts[begun] :], tuple(who)) for begun, who in holders.items())


def token_bytes(config: ModelConfig) -> int:
    """Bytes that the cache takes for one token: a key and a value of each head that has its own, in each layer."""
    heads = config.of("decoder")
    return config.n_decoder_layers * 2 * heads.n_kv_heads * heads.d_head * VALUE_BYTES


def empty_places(found: Sequence[Block], *, size: int) -> int:
    """Places of blocks that hold nothing yet."""
    return sum(size - len(one.ids) for one in found)
