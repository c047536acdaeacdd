"""Faster `nn.Module`, `nn.Linear` and dropout: one-row products, 16-bit values widened to 32, random bytes.

A decoding step calls sixty modules, and torch spends a microsecond on each to find it and as much again to look for
hooks: a tenth of the step. Here a part is a plain attribute, and a module without hooks is its `forward`.

**A linear map**, x W^T + b, uses all threads even for a single row. A decoding step multiplies one row with every
matrix of the decoder. Math libraries give such a product to one thread; cut into blocks of outputs and multiplied as a
batch, it uses all threads. Its cost is reading the matrix, so small matrices stay whole.

Where memory is too small for 32 bits, a matrix may stay in 16 (`transformer.checkpoint.parameter_layout`). Its values
are then widened to 32 bits, a block at a time, whenever they are used: the result differs only by rounding, and takes
two to three times as long.

**Dropout** (Srivastava et al., 2014): a float32 random number per value would take a fifth of a training step on a CPU.
A random byte is enough, and NumPy draws eight at a time. The probability is rounded to a multiple of 1/256.

Shapes: I inputs, O outputs, n threads.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import (  # hooks of all modules; torch fills these and never replaces them
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)

from transformer.model.taps import NO_TAP, Tap


class Module(nn.Module):
    """A part of the model; everything that torch's module can do, hooks included, works as usual."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if isinstance(value, nn.Module):
            self.__dict__[name] = value
        elif name in self.__dict__.get("_modules", ()):  # no part any more: None
            self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        self.__dict__.pop(name, None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call `forward`."""
        hooks = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
        hooks = hooks or _global_forward_hooks or _global_forward_pre_hooks
        if hooks or _global_backward_hooks or _global_backward_pre_hooks or self._compiled_call_impl:
            return super().__call__(*args, **kwargs)
        return self.forward(*args, **kwargs)


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
        return linear(input, tap.setting("weight", self.weight), tap.setting("bias", self.bias))


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


class Dropout(Module):
    """In training, set each value to 0 with probability `p`; in evaluation, do nothing."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.level = min(round(p * 256), 255)  # bytes below it are dropped

    def forward(self, x: Tensor) -> Tensor:
        """Any shape -> the same shape."""
        if not self.training or self.level == 0:
            return x
        keep = torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=False)
        # Written as 0 and 1 of x's own type at once: a bool tensor, converted, would cost four times as much.
        torch.ge(random_bytes(x.numel(), x.device).view(x.shape), self.level, out=keep)
        return x * keep.mul_(256 / (256 - self.level))


def random_bytes(n: int, device: torch.device) -> Tensor:
    """n uniform random bytes, uint8 [n], determined by torch's own seed (`torch.manual_seed`)."""
    if device.type != "cpu":
        return torch.randint(0, 256, (n,), dtype=torch.uint8, device=device)
    seed = int(torch.randint(0, 2**62, (), dtype=torch.int64))
    words = np.random.Generator(np.random.SFC64(seed)).integers(0, 2**64, (n + 7) // 8, dtype=np.uint64)
    return torch.from_numpy(words.view(np.uint8))[:n]
