"""Which ids a start, an end, padding and the unknown piece may have, likeliest first.

A tokenizer names its special pieces. Without one, tutorials give them the first ids; and a table of embeddings whose
row is all zeros was told so: PyTorch's `nn.Embedding(padding_idx=...)` makes that row zero and never learns it.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from torch import Tensor

from transformer.text.listed import CALLED
from transformer.text.tokenizer import AnyTokenizer

USUAL = 4  # ids from 0 that tutorials give to special pieces
MOST_NAMED = 8  # special pieces of a tokenizer that are tried; some have hundreds, for languages

# Without a tokenizer: usual for each, in an order in which the first of all four differ.
FIRST: Mapping[str, int] = MappingProxyType({"pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3})
MAY_BE_NONE = ("pad_id", "unk_id", "bos_id")


def likely_ids(name: str, size: int, tokenizer: AnyTokenizer | None, table: Tensor | None) -> list[int | None]:
    """The values that a special id, one of `CALLED`, may have in a vocabulary of a size, the smaller of both.

    The tokenizer is the source's, if there is one with names, and the table its embeddings [V, D], if they were read.
    """
    found: list[int | None] = []
    if tokenizer is not None:
        found += _named(name, tokenizer)
    if name == "pad_id" and table is not None:
        found += zero_rows(table)
    first = FIRST[name]
    found += [first] * (tokenizer is None)
    found += [None] * (name == "pad_id")  # which does no harm where nothing says which it is
    found += [*range(USUAL)] if tokenizer is None else _special(tokenizer)
    found += [None] * (name in MAY_BE_NONE)
    return [i for i in dict.fromkeys(found) if i is None or i < size]


def zero_rows(table: Tensor) -> list[int]:
    """Rows [D] of a table [V, D] that are all zeros, if they are few: what padding has."""
    rows = [int(i) for i in (table == 0).all(dim=1).nonzero()[:, 0]]
    return rows if len(rows) == 1 else []


def _named(name: str, tokenizer: AnyTokenizer) -> Iterator[int]:
    ids = map(tokenizer.id_of, CALLED[name])
    yield from (i for i in ids if i is not None)


def _special(tokenizer: AnyTokenizer) -> list[int]:
    return [i for i in range(min(tokenizer.size, 64)) if tokenizer.is_special(i)][:MOST_NAMED]
