"""A linear map, x W^T + b, that uses all threads even for a single row.

A decoding step multiplies one row with every matrix of the decoder. Math libraries give such a product to one thread;
cut into blocks of outputs and multiplied as a batch, it uses all threads. Its cost is reading the matrix, so small
matrices stay whole.

Where memory is too small for 32 bits, a matrix may stay in 16 (`transformer.checkpoint.parameter_layout`). Its values
are then widened to 32 bits, a block at a time, whenever they are used: the result differs only by rounding, and takes
two to three times as long.

Shapes: I inputs, O outputs, n threads.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.module import Module
from transformer.model.taps import NO_TAP, Tap

SMALLEST = 2**17  # values of a matrix that is worth cutting
NARROW = (torch.float16, torch.bfloat16)
WIDENED = 2**18  # values that are made 32 bits wide at once: 1 MB, which is still in the cache when it is multiplied


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b: [..., I] with W [O, I] and b [O] -> [..., O]."""
    if weight.dtype in NARROW and x.dtype == torch.float32:
        parts = [F.linear(x, rows.to(x.dtype)) for rows in weight.split(max(WIDENED // weight.size(1), 1))]
        outputs = torch.cat(parts, dim=-1)
        return outputs if bias is None else outputs + bias
    n_outputs, n_inputs = weight.shape
    n = torch.get_num_threads()
    if x.numel() > n_inputs or n == 1 or n_outputs % n or weight.numel() < SMALLEST or x.is_cuda:
        return F.linear(x, weight, bias)
    rows, blocks = x.view(1, 1, n_inputs).expand(n, 1, n_inputs), weight.view(n, -1, n_inputs).mT  # [n, I, O / n]
    outputs = torch.bmm(rows, blocks) if bias is None else torch.baddbmm(bias.view(n, 1, -1), rows, blocks)
    return outputs.view(*x.shape[:-1], n_outputs)


def widened(values: Tensor) -> Tensor:
    """The same values, in at least 32 bits."""
    return values.float() if values.dtype in NARROW else values


def rows_of(table: Tensor, ids: Tensor) -> Tensor:
    """The rows of a table [V, D] for ids [...], in at least 32 bits -> [..., D]."""
    return widened(F.embedding(ids, table))


class Linear(Module, nn.Linear):
    """torch's module, computed by `linear`."""

    # Of the first of several maps whose matrices lie below each other (`transformer.checkpoint.parameter_layout`): all
    # of them as one matrix [O + ..., I], and their biases.
    joined: tuple[Tensor, Tensor | None] | None = None

    def reset_parameters(self) -> None:
        """Draw values, but for a module without any: torch takes a millisecond to draw nothing."""
        if not self.weight.is_meta:
            super().reset_parameters()

    def forward(self, input: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[..., I] -> [..., O]."""
        return linear(input, tap.setting("weight", self.weight), self.bias)


def products(maps: Mapping[str, Linear], inputs: Sequence[Tensor], *, tap: Tap) -> list[Tensor]:
    """The outputs of several maps, by name, for an input each [..., I] -> [..., O] each.

    Matrices that are stored as one block and read the same input are multiplied at once. In decoding, with one
    token's vector, that takes hardly longer than the first of them alone.
    """
    first = next(iter(maps.values()))
    if (joined := tap.setting("joined", first.joined)) is not None and all(x is inputs[0] for x in inputs):
        weight, bias = joined
        if weight.data_ptr() == first.weight.data_ptr():  # if not, this is a copy, and the first was moved away
            sizes = [one.out_features for one in maps.values()]
            return list(linear(inputs[0], weight, bias).split_with_sizes(sizes, dim=-1))
    return [one(x, tap=tap.child(name)) for (name, one), x in zip(maps.items(), inputs, strict=True)]
