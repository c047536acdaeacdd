"""What the parameters are called in a checkpoint's file.

In memory an attention's projections to queries, keys and values are one matrix, `in_proj`; in a file they are three,
`q_proj`, `k_proj` and `v_proj`, as the paper and nearly all other programs have them. All other names are the same.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

JOINED, PARTS = ".in_proj.", (".q_proj.", ".k_proj.", ".v_proj.")


def to_stored(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """From a model's state dict to the tensors of a file; copies nothing."""
    stored: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if JOINED in name:
            stored |= {name.replace(JOINED, part): rows for part, rows in zip(PARTS, tensor.chunk(3), strict=True)}
        else:
            stored[name] = tensor
    return stored


def from_stored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """From the tensors of a file to a model's state dict.

    Args:
        stored: Complete: where there is a `q_proj`, there are the other two.
    """
    state: dict[str, Tensor] = {}
    for name, tensor in stored.items():
        if PARTS[0] in name:
            parts = [stored[name.replace(PARTS[0], part)] for part in PARTS]
            state[name.replace(PARTS[0], JOINED)] = torch.cat(parts)
        elif not any(part in name for part in PARTS):
            state[name] = tensor
    return state
