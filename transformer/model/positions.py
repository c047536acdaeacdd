"""Position tables added to token embeddings: sinusoids in four layouts, and learned positions.

Attention alone does not see order. Two tables are built here: sinusoids from a formula, and a learned table. Positions
that act inside attention are in `transformer.model.attention_positions`.

Source: Vaswani et al. (2017), section 3.5. The other layouts hold the same waves in another order (Marian's models
in Hugging Face's transformers) or nearly the same (tensor2tensor, Marian itself, fairseq); its parameters do not show
which one a model was trained with.
"""

import math
from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn

from transformer.model.attention_features import SinusoidLayout
from transformer.model.config import ModelConfig
from transformer.model.module import Module

Moves = Callable[[Tensor], Tensor]
"""What gives each place [T], from 0, another one: whole numbers for a table, any for positions inside attention."""

AS_THEY_STAND: Final[Moves | None] = None


def sinusoidal_table(max_len: int, d_model: int) -> Tensor:
    """The sinusoids of the paper, float32 [max_len, d_model], computed in float64.

        table[p, 2i]     = sin(p / 10000^(2i / d_model))
        table[p, 2i + 1] = cos(p / 10000^(2i / d_model))

    For an odd `d_model` the last sine has no cosine.
    """
    angle = _angles(max_len, d_model)  # [position, ceil(d_model / 2)]
    table = torch.empty(max_len, d_model, dtype=torch.float64)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, : d_model // 2].cos()
    return table.float()


def halves_table(max_len: int, d_model: int) -> Tensor:
    """All sines, then all cosines: Junczys-Dowmunt et al., "Marian: Fast Neural Machine Translation in C++" (2018)."""
    angle = _angles(max_len, d_model)  # [position, ceil(d_model / 2)]
    return torch.cat((angle.sin(), angle[:, : d_model // 2].cos()), dim=1).float()


def fairseq_table(max_len: int, d_model: int, *, first: int) -> Tensor:
    """Halves whose slowest wave has exactly the frequency 1 / 10000; an odd width ends with a column of 0.

        table[p, i]              = sin((first + p) / 10000^(i / (n - 1))),    n = floor(d_model / 2)
        table[p, n + i]          = cos((first + p) / 10000^(i / (n - 1)))

    The first row's position is 0 in tensor2tensor; fairseq begins after the padding id.

    Source: Ott et al., "fairseq" (2019), whose program took the formula from tensor2tensor.
    """
    half = d_model // 2
    position = torch.arange(first, first + max_len, dtype=torch.float64)[:, None]  # [position, 1]
    steps = torch.arange(half, dtype=torch.float64) / max(1, half - 1)  # [half]
    angle = position * torch.exp(steps * -math.log(10_000.0))  # [position, half]
    return torch.cat((angle.sin(), angle.cos(), torch.zeros(max_len, d_model % 2)), dim=1).float()


def table_of(layout: SinusoidLayout, max_len: int, d_model: int, *, after_padding: int = 0) -> Tensor:
    """The table of a layout; fairseq's begins at the position after padding."""
    if layout in ("fairseq", "tensor2tensor"):
        return fairseq_table(max_len, d_model, first=after_padding if layout == "fairseq" else 0)
    return (halves_table if layout == "halves" else sinusoidal_table)(max_len, d_model)


def _angles(max_len: int, d_model: int) -> Tensor:
    position = torch.arange(max_len, dtype=torch.float64)[:, None]  # [position, 1]
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # [ceil(d_model / 2)]
    return position * torch.exp(even * (-math.log(10_000.0) / d_model))  # [position, ceil(d_model / 2)]


class _Table(Module):
    table: Tensor

    def forward(self, length: int, *, offset: int = 0, moves: Moves | None = AS_THEY_STAND) -> Tensor:
        """Vectors of positions offset to offset + length - 1, moved if they are, [length, d_model]."""
        if moves is None:
            return self.table[offset : offset + length]
        places = moves(torch.arange(offset, offset + length, device=self.table.device))
        return self.table[places % len(self.table)]  # after the last row comes the first again


class FixedPositions(_Table):
    """A table computed from a formula, so it is not stored in a checkpoint."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layout, self.after_padding = config.sinusoid_layout, config.fill_id + 1
        self.register_buffer("table", torch.empty(config.max_len, config.d_model), persistent=False)
        if not self.table.is_meta:  # made without values: `transformer.checkpoint.load` fills it later
            self.fill()

    def fill(self, device: torch.device | None = None) -> None:
        """Compute the table; None: on the processor."""
        table = table_of(self.layout, *self.table.shape, after_padding=self.after_padding)
        self.table = table.to(device)


class LearnedPositions(_Table):
    """A table of parameters, trained with the model; the model sets their first values."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(config.max_len, config.d_model))


def make_positions(config: ModelConfig) -> FixedPositions | LearnedPositions | None:
    """The table that a config names; None if positions act inside attention, or there are none."""
    if config.placing.adds != "table":
        return None
    return LearnedPositions(config) if config.placing.parameters else FixedPositions(config)
