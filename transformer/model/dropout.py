"""Dropout: while training, zero some values at random and scale up the rest.

Drawing a float32 random number per value takes a fifth of a training step on a CPU. A random byte per value is
enough, and NumPy draws eight at a time. The probability is rounded to a multiple of 1/256.

Source: Srivastava et al., "Dropout" (2014); Vaswani et al. (2017), section 5.4.
"""

import numpy as np
import torch
from torch import Tensor

from transformer.model.module import Module


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
