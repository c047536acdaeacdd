"""A KV cache in blocks of equal size, which are taken one by one while texts grow, as virtual memory is in pages.

A text's block table names the block of each of its parts. Texts that begin alike share the blocks of what they have
in common. When one of them would write into a block that others hold, it gets a copy of its own (copy on write).

Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023),
sections 4.1 to 4.4.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.errors import QueryError
from transformer.model.config import ModelConfig

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
