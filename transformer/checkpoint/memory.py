"""How the parameters of a loaded model lie in memory.

A decoding step multiplies every matrix of the decoder by one vector, so what it costs is reading the matrices once.
Three things make that two to three times faster, and change neither shapes nor results:

- A processor reads long runs of neighbouring values faster than short ones, so the values of a matrix with more rows
  than columns are put next to each other by columns.
- W_Q, W_K and W_V of a self-attention read the same vector, so they lie as one matrix and are multiplied at once.
- All parameters share one block of memory, large enough that NumPy asks the system for huge pages for it: the
  processor then looks up far fewer addresses.
"""

import numpy as np
import torch
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer

ALIGNMENT = 16  # float32 values, 64 bytes: a line of the processor's cache
Group = tuple[nn.Parameter, ...]  # parameters that lie below each other as one


@torch.no_grad()
def lay_out(model: Transformer) -> None:
    """Move all parameters (float32, on the CPU) into one block, tall matrices by columns.

    A table that rows are only looked up in stays as it is.
    """
    looked_up = {id(model.src_table), id(model.target_table)}
    if model.anatomy.writes:
        looked_up -= {id(model.output_weight)}
    groups = _groups(model)
    sizes = [sum(p.numel() for p in group) for group in groups]
    starts = np.cumsum([0] + [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]).tolist()
    block = torch.from_numpy(np.empty(starts[-1], dtype=np.float32))
    for group, start, size in zip(groups, starts, sizes, strict=False):  # the last start is the end
        _place(group, block[start : start + size], by_rows=id(group[0]) in looked_up)
    for attention in _self_attentions(model):
        weight, *bias = (_joined(group) for group in _projections(attention))
        attention.joined = weight, bias[0] if bias else None


def _self_attentions(model: Transformer) -> list[MultiHeadAttention]:
    kinds = [one.kind for one in model.anatomy.attentions if one.stack == one.keys_from]
    return [attention for kind in kinds for attention in model.attentions(kind)]


def _projections(attention: MultiHeadAttention) -> list[Group]:
    """W_Q, W_K, W_V, and their biases if they have any."""
    modules = (attention.q_proj, attention.k_proj, attention.v_proj)
    return list(zip(*(module.parameters() for module in modules), strict=True))


def _groups(model: Transformer) -> list[Group]:
    """All parameters in the model's order, those that are multiplied at once together."""
    together = {id(p): group for one in _self_attentions(model) for group in _projections(one) for p in group}
    groups = (together.get(id(p), (p,)) for p in model.parameters())
    return list({id(group[0]): group for group in groups}.values())


def _place(group: Group, place: Tensor, *, by_rows: bool) -> None:
    shape = (sum(len(p) for p in group), *group[0].shape[1:])
    tall = len(shape) == 2 and shape[0] > shape[1] and not by_rows
    whole = place.view(shape[::-1]).t() if tall else place.view(shape)
    for parameter, rows in zip(group, whole.split([len(p) for p in group]), strict=True):
        parameter.data = rows.copy_(parameter.detach())


def _joined(group: Group) -> Tensor:
    """The one matrix or vector that the parameters of a group are the rows of."""
    first = group[0].data
    return first.as_strided((sum(len(p) for p in group), *first.shape[1:]), first.stride())
