"""How a tensor's values are moved, or folded into another's, on the way from a file into the model.

Each reshape is a function from a tensor of the file to those of the model, with a sentence for the report. On
tensors without values (torch's "meta" device) the same function gives shapes, so those are known before anything is
read.

Shapes: D d_model, d width of a head, V vocabulary, L positions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.i18n import Sentence, say

Facts = Mapping[str, int]  # numbers that a reshape needs and no tensor says, such as n_heads


@dataclass(frozen=True)
class Reshape:
    """A named way to move values."""

    # From a tensor of the file to those of the model.
    apply: Callable[[Tensor, Facts], tuple[Tensor, ...]]
    said: Sentence | None = None  # what it does, for the report; None if values stay as they are
    needs: tuple[str, ...] = ()  # the facts that it reads
    exact: bool = True  # values only move, so that those of 16 bits need no more
    stands_in: Sentence | None = None  # what the last target is, if the file has no such part and it changes nothing


AS_IS = Reshape(lambda tensor, _: (tensor,))

TRANSPOSED = Reshape(lambda tensor, _: (tensor.t(),), say("transposed"))  # [in, out] -> [out, in]

SPLIT_ROWS = Reshape(  # [3 D, D] -> q, k, v, each [D, D]; biases [3 D] alike
    lambda tensor, _: _thirds(tensor), say("split into queries, keys and values by rows")
)

SPLIT_COLUMNS = Reshape(  # [D, 3 D] -> q, k, v, each [D, D]; biases [3 D] alike
    lambda tensor, _: _thirds(tensor.t() if tensor.dim() == 2 else tensor),
    say("transposed, and split into queries, keys and values"),
)

SPLIT_HEADS = Reshape(  # rows are [head][q, k, v][d]
    lambda tensor, facts: _thirds_of_heads(tensor, facts["n_heads"]),
    say("split into queries, keys and values head by head"),
    needs=("n_heads",),
)

PLUS_ONE = Reshape(
    lambda tensor, _: (tensor if tensor.is_meta else tensor + 1,), say("plus 1"), exact=False
)  # a norm that scales by 1 + w

FLATTENED = Reshape(  # positions [1, L, D] or [L, 1, D] -> [L, D]
    lambda tensor, _: (_flat(tensor),), say("axis of length 1 removed")
)

FLATTENED_FOR_BOTH = Reshape(
    lambda tensor, _: (_flat(tensor),) * 2, say("used for both sides, without the axis of length 1")
)

FOR_BOTH = Reshape(lambda tensor, _: (tensor,) * 2, say("used for both sides"))

ONE_MAP = Reshape(  # a map [F, D], or its bias, and behind it one [F, F] that changes nothing
    lambda tensor, _: (tensor, _nothing_more(tensor)),
    stands_in=say("identity (weight 1 on the diagonal, bias 0), as the feed-forward network is a single map"),
)

WITH_NO_OUTPUT_MAP = Reshape(  # of values [D, D] -> [D, D]
    lambda tensor, _: (_unit_vectors(len(tensor), tensor),),
    stands_in=say("identity matrix, as the heads have no output projection"),
)

UNIT_VECTORS = Reshape(  # of the first map of a feed-forward network [F, D] -> [D, D]
    lambda tensor, _: (_unit_vectors(tensor.size(1), tensor),),
    stands_in=say("unit vectors, as there are no embeddings"),
)


def cut_rows(n: int) -> Reshape:
    """Leave out the first rows of a table: those that count positions from `n` do not use them."""
    return Reshape(lambda tensor, _: (tensor[n:],), say("first {n} rows removed", n=n))


def shapes_of(reshape: Reshape, shape: Sequence[int], facts: Facts) -> tuple[tuple[int, ...], ...]:
    """The shapes that come out for a shape that goes in; ValueError if it cannot be reshaped so."""
    try:
        made = reshape.apply(torch.empty(tuple(shape), device="meta"), facts)
    except (RuntimeError, IndexError, TypeError, ZeroDivisionError) as error:  # TypeError: a number has no length
        raise ValueError("shape") from error
    return tuple(tuple(tensor.shape) for tensor in made)


def _nothing_more(tensor: Tensor) -> Tensor:
    """The weight or the bias of a map that changes nothing, behind the one of this weight or bias."""
    return tensor.new_zeros(tensor.shape) if tensor.dim() == 1 else _unit_vectors(len(tensor), tensor)


# For a sum, an identity or zeros like others without values, torch would import its compiler, which takes seconds.


def _unit_vectors(n: int, where: Tensor) -> Tensor:
    return torch.zeros(n, n, device=where.device).fill_diagonal_(1)


def _thirds(tensor: Tensor) -> tuple[Tensor, ...]:
    if len(tensor) % 3:
        raise ValueError("three parts")
    return tensor.split(len(tensor) // 3)


def _thirds_of_heads(tensor: Tensor, n_heads: int) -> tuple[Tensor, ...]:
    if n_heads < 1 or len(tensor) % (3 * n_heads):
        raise ValueError("three parts a head")
    by_head = tensor.reshape(n_heads, 3, -1, *tensor.shape[1:])  # [H, 3, d, D]
    return tuple(by_head[:, i].flatten(0, 1) for i in range(3))


def _flat(table: Tensor) -> Tensor:
    if table.dim() == 3 and 1 in table.shape[:2]:
        return table.flatten(0, 1)
    if table.dim() != 2:
        raise ValueError("a table of positions")
    return table
