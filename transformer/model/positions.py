"""What gives the model order: a table of vectors, one a position, added to the token embeddings.

Attention by itself does not see order. Two tables are built here: sinusoids from a formula, and a table that
is learned like any other parameter.

Source: Vaswani et al. (2017), section 3.5.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.model.config import ModelConfig


def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    """The sinusoids of the paper.

        table[p, 2i]     = sin(p / 10000^(2i / d_model))
        table[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    For an odd `d_model` the last sine has no cosine beside it.

    Returns:
        Float32 [max_len, d_model], computed in float64.
    """
    position = torch.arange(max_len, dtype=torch.float64)[:, None]  # [position, 1]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # [ceil(d_model / 2)]
    angle = position * torch.exp(even * (-math.log(10_000.0) / d_model))  # [position, ceil(d_model / 2)]
    table = torch.empty(max_len, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, : d_model // 2].cos()
    return table.float()


# What a kind of fixed table is computed by: max_len and d_model -> [max_len, d_model].
FORMULAS: dict[str, Callable[[int, int], Tensor]] = {"sinusoidal": sinusoidal_table}


class FixedPositions(nn.Module):
    """A table that a formula gives, so it is not stored in a checkpoint."""

    table: Tensor

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.formula = FORMULAS[config.positions]
        self.register_buffer("table", torch.empty(config.max_len, config.d_model), persistent=False)
        if not self.table.is_meta:  # made without values: `transformer.checkpoint.load` fills it later
            self.fill()

    def fill(self) -> None:
        """Compute the table."""
        self.table = self.formula(*self.table.shape)

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Vectors of positions offset to offset + length - 1, [length, d_model]."""
        return self.table[offset : offset + length]


class LearnedPositions(nn.Module):
    """A table of parameters, trained with the model, which gives them their first values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.max_len, config.d_model))

    def forward(self, length: int, *, offset: int = 0) -> Tensor:
        """Vectors of positions offset to offset + length - 1, [length, d_model]."""
        return self.table[offset : offset + length]


def make_positions(config: ModelConfig) -> FixedPositions | LearnedPositions:
    """The table that a config names."""
    return FixedPositions(config) if config.positions in FORMULAS else LearnedPositions(config)
