"""Feed-forward network (`FeedForward`), plain or gated, and its activations: ReLU, GELU and its variants, SiLU.

A linear map to more dimensions, a non-linearity, and a map back, token by token:

    plain   W_down f(W_up x)
    gated   W_down (f(W_gate x) * W_up x): one linear map decides how much of the other's numbers passes

Source: Vaswani et al. (2017), section 3.3 (ReLU); Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016), for
GELU, its tanh approximation and x σ(1.702 x), called quick; Elfwing et al. (2018) for SiLU, x σ(x); Shazeer, "GLU
Variants Improve Transformer" (2020), for the gate.

Shapes: B batch, T tokens, D d_model, F d_ff.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.config import ModelConfig
from transformer.model.module import Dropout, Linear, Module
from transformer.model.taps import NO_TAP, Tap


def quick_gelu(x: Tensor) -> Tensor:
    """x σ(1.702 x), the sigmoid approximation of GELU."""
    return x * torch.sigmoid(1.702 * x)


def unchanged(x: Tensor) -> Tensor:
    """x itself, for a model whose feed-forward network is one linear map."""
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
    "quick_gelu": quick_gelu,
    "none": unchanged,
}


class FeedForward(Module):
    """Two linear maps with a non-linearity between them, applied to each token alone; three maps with a gate."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        bias = config.biases.ffn
        if config.gated:
            self.gate_proj = Linear(config.d_model, config.d_ff, bias=bias)
        self.up_proj = Linear(config.d_model, config.d_ff, bias=bias)
        self.down_proj = Linear(config.d_ff, config.d_model, bias=bias)
        self.activation, self.gated = ACTIVATIONS[config.activation], config.gated
        self.dropout = Dropout(config.ffn_dropout)

    def forward(self, x: Tensor, *, tap: Tap = NO_TAP) -> Tensor:
        """[B, T, D] -> [B, T, D]."""
        act = tap.setting("function", self.activation)
        if self.gated:
            gate = act(tap("pre_activation", self.gate_proj(x, tap=tap.child("gate_proj"))))  # [B, T, F]
            hidden = gate * tap("linear", self.up_proj(x, tap=tap.child("up_proj")))
        else:
            hidden = act(tap("pre_activation", self.up_proj(x, tap=tap.child("up_proj"))))  # [B, T, F]
        return tap("output", self.down_proj(self.dropout(tap("activation", hidden)), tap=tap.child("down_proj")))
