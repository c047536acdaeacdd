"""A linear map, x W^T + b, that uses all threads for a single row too.

A decoding step multiplies one row with every matrix of the decoder. Math libraries give such a product to one thread;
cut into blocks of outputs and multiplied as a batch, it takes them all. What it costs is reading the matrix, so small
ones stay whole.

Shapes: I inputs, O outputs, n threads.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SMALLEST = 2**17  # values of a matrix that is worth cutting


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b.

    Args:
        x: [..., I].
        weight: W [O, I].
        bias: b [O].

    Returns:
        [..., O].
    """
    n_outputs, n_inputs = weight.shape
    n = torch.get_num_threads()
    if x.numel() > n_inputs or n == 1 or n_outputs % n or weight.numel() < SMALLEST or x.is_cuda:
        return F.linear(x, weight, bias)
    rows, blocks = x.view(1, 1, n_inputs).expand(n, 1, n_inputs), weight.view(n, -1, n_inputs).mT  # [n, I, O / n]
    outputs = torch.bmm(rows, blocks) if bias is None else torch.baddbmm(bias.view(n, 1, -1), rows, blocks)
    return outputs.view(*x.shape[:-1], n_outputs)


class Linear(nn.Linear):
    """torch's module with the function above."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        return linear(input, self.weight, self.bias)
