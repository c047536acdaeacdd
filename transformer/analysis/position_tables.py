"""The table of positions of a loaded model, with its sines and cosines in turns as in the paper.

Source: Vaswani et al. (2017), section 3.5.

Knows nothing of what is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from transformer.model.anatomy import StackName
from transformer.model.config import ModelConfig
from transformer.model.transformer import Transformer


def own_table(model: Transformer, stack: StackName) -> np.ndarray:
    """What a stack adds to its embeddings, [position, d_model]; do not write to it. There has to be such a table."""
    positions: Any = model.stack(stack).embedding.positions  # its table is a buffer or a parameter
    return in_turns(positions.table.detach().numpy(), model.config)


def in_turns(table: np.ndarray, config: ModelConfig) -> np.ndarray:
    """A table whose sines stand before its cosines with both in turns, as in the paper; any other as it is."""
    if config.positions != "sinusoidal" or config.sinusoid_layout == "interleaved":
        return table
    d_model = table.shape[1]
    n_sines = d_model // 2 if config.sinusoid_layout in ("fairseq", "tensor2tensor") else -(-d_model // 2)
    turns = [n_sines + dim // 2 if dim % 2 else dim // 2 for dim in range(d_model - d_model % 2)]
    return table[:, [*turns, *(dim for dim in range(d_model) if dim not in turns)]]
