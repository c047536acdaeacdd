"""Norms: LayerNorm, RMSNorm, norm by deviation, none; centre and size of each; choice by config.

Each token's vector is brought to a fixed size, then scaled by learned numbers:

    layer       γ (x - μ) / sqrt(σ² + ε) + β, with σ² the mean squared distance from the mean μ
    rms         γ x / sqrt(mean of x² + ε): the mean stays, and nothing is added
    deviation   γ (x - μ) / (s + ε) + β, with s² the sum of squared distances divided by D - 1, or if biased by D

All are y = γ (x - centre) / size + β; analyses need only the centre and the size.

Source: Ba et al., "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019);
Rush, "The Annotated Transformer" (2018), for the third, which many tutorials use.

Shapes: D d_model.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.config import ModelConfig
from transformer.model.module import Module


class LayerNorm(Module, nn.LayerNorm):
    """torch's layer norm; `size` is what it divides by."""

    def forward(self, input: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def centre(self, x: Tensor) -> Tensor:
        """What is taken off [..., D] -> [..., 1]."""
        return x.mean(dim=-1, keepdim=True)

    def size(self, x: Tensor) -> Tensor:
        """What is divided by [..., D] -> [..., 1]."""
        return (x.var(dim=-1, keepdim=True, correction=0) + self.eps).sqrt()


class _Uncentred(Module):
    """A norm that takes nothing off, and has no bias."""

    bias: None = None

    def centre(self, x: Tensor) -> Tensor:
        """What is taken off: nothing."""
        return torch.zeros_like(x[..., :1])


class RMSNorm(_Uncentred):
    """Division by the root mean square; only γ is learned."""

    def __init__(self, d_model: int, *, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)

    def size(self, x: Tensor) -> Tensor:
        """What is divided by [..., D] -> [..., 1]."""
        return (x.square().mean(dim=-1, keepdim=True) + self.eps).sqrt()


class DeviationNorm(Module):
    """A layer norm with the unbiased or the biased deviation, and ε outside the root."""

    def __init__(self, d_model: int, *, eps: float, bias: bool, biased: bool = False) -> None:
        super().__init__()
        self.biased = biased
        self.weight, self.eps = nn.Parameter(torch.ones(d_model)), eps
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        scaled = self.weight * (x - self.centre(x)) / self.size(x)
        return scaled if self.bias is None else scaled + self.bias

    def centre(self, x: Tensor) -> Tensor:
        """What is taken off [..., D] -> [..., 1]."""
        return x.mean(dim=-1, keepdim=True)

    def size(self, x: Tensor) -> Tensor:
        """What is divided by [..., D] -> [..., 1]."""
        return x.std(dim=-1, keepdim=True, correction=0 if self.biased else 1) + self.eps


class NoNorm(_Uncentred):
    """The norm of a model without norms: nothing is subtracted, and the size is 1."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    @property
    def weight(self) -> Tensor:
        """What each number is multiplied by: 1."""
        return torch.ones(self.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        return x

    def size(self, x: Tensor) -> Tensor:
        """What is divided by: 1."""
        return torch.ones_like(x[..., :1])


Norm = LayerNorm | RMSNorm | DeviationNorm | NoNorm


def make_norm(config: ModelConfig) -> Norm:
    """The norm over d_model that a config names."""
    bias = config.biases.norms
    if config.norm_kind == "none":
        return NoNorm(config.d_model)
    if config.norm_kind == "rms":
        return RMSNorm(config.d_model, eps=config.norm_eps)
    if config.norm_kind in ("deviation", "biased_deviation"):
        biased = config.norm_kind == "biased_deviation"
        return DeviationNorm(config.d_model, eps=config.norm_eps, bias=bias, biased=biased)
    return LayerNorm(config.d_model, eps=config.norm_eps, bias=bias)
