"""Memory layout of parameters: a model without values to be filled; one block, fused QKV, column-major matrices.

A decoding step multiplies every matrix of the decoder by one vector, so its cost is reading the matrices once. Three
things make that two to three times faster, and change neither shapes nor results:

- A processor reads long runs of neighbouring values faster than short ones, so a matrix with more rows than columns
  is stored by columns.
- W_Q, W_K and W_V of a self-attention read the same vector, so they are stored as one matrix and multiplied at once.
- All parameters share one block of memory, large enough for NumPy to ask the system for huge pages: the processor
  then looks up far fewer addresses.

A model is made without values, and each value is written to its final place, so a large model is in memory only once.
If even that is too much, matrices that a file has in 16 bits stay in 16 bits, each in its own memory, and
`transformer.model.module` widens them whenever they are used.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import ModelConfig
from transformer.model.positions import FixedPositions
from transformer.model.transformer import Transformer

ALIGNMENT = 16  # float32 values, 64 bytes: a line of the processor's cache
Group = tuple[str, ...]  # names of parameters that lie below each other as one
Halves = Mapping[str, torch.dtype]  # names of matrices that stay in 16 bits, and in which
NO_HALVES: Halves = MappingProxyType({})


def vacant(config: ModelConfig, *, halves: Halves = NO_HALVES) -> tuple[Transformer, dict[str, Tensor]]:
    """A model whose parameters have places in memory but no values, and these places by name; then call `ready`."""
    with torch.device("meta"):  # shapes without values: nothing is initialised only to be overwritten
        model = Transformer(config)
    places = _places(model, halves)
    model.load_state_dict(places, assign=True)
    return model, places


def on(device: torch.device, places: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same places on a device: each block of memory is moved as one, so what lies together stays together."""
    blocks, moved = dict[int, Tensor](), dict[str, Tensor]()
    for name, place in places.items():
        memory = place.untyped_storage()
        if memory.data_ptr() not in blocks:
            n_values = memory.nbytes() // place.element_size()
            blocks[memory.data_ptr()] = place.as_strided((n_values,), (1,), 0).to(device)
        block = blocks[memory.data_ptr()]
        moved[name] = block.as_strided(place.shape, place.stride(), place.storage_offset())
    return moved


def ready(model: Transformer) -> Transformer:
    """The model with the tables computed by a formula, which are in no file; frozen, in evaluation mode."""
    for module in model.modules():
        if isinstance(module, FixedPositions):
            module.fill(model.device)
    _join(model)
    return model.requires_grad_(False).eval()


def _places(model: Transformer, halves: Halves) -> dict[str, Tensor]:
    """Memory for all parameters, tall matrices by columns; a table that rows are only looked up in lies by rows."""
    looked_up = {id(model.src_table), id(model.target_table)}
    if model.anatomy.gives_logits:
        looked_up -= {id(model.output_weight)}
    parameters = dict(model.named_parameters())
    groups = _groups(model, apart=halves)
    sizes = [sum(parameters[name].numel() for name in group) for group in groups]
    starts = np.cumsum([0] + [-(-size // ALIGNMENT) * ALIGNMENT for size in sizes]).tolist()
    block = torch.from_numpy(np.empty(starts[-1], dtype=np.float32))
    places = {name: torch.empty(parameters[name].shape, dtype=dtype) for name, dtype in halves.items()}
    for group, start, size in zip(groups, starts, sizes, strict=False):  # the last start is the end
        below = [parameters[name] for name in group]
        by_rows = id(below[0]) in looked_up
        places |= zip(group, _rows(block[start : start + size], below, by_rows=by_rows), strict=True)
    return places


def _rows(place: Tensor, below: list[nn.Parameter], *, by_rows: bool) -> Iterable[Tensor]:
    """The part of a place that each of the parameters below each other has."""
    shape = (sum(len(p) for p in below), *below[0].shape[1:])
    tall = len(shape) == 2 and shape[0] > shape[1] and not by_rows
    whole = place.view(shape[::-1]).t() if tall else place.view(shape)
    return whole.split([len(p) for p in below])


def _self_attentions(model: Transformer) -> list[MultiHeadAttention]:
    kinds = [one.kind for one in model.anatomy.attentions if one.stack == one.keys_from]
    return [attention for kind in kinds for attention in model.attentions(kind)]


def _projections(attention: MultiHeadAttention) -> list[tuple[nn.Parameter, ...]]:
    """W_Q, W_K, W_V, and their biases if they have any."""
    modules = (attention.q_proj, attention.k_proj, attention.v_proj)
    return list(zip(*(module.parameters() for module in modules), strict=True))


def _groups(model: Transformer, *, apart: Iterable[str]) -> list[Group]:
    """All parameters but those apart, in the model's order, those that are multiplied at once together."""
    names = {id(p): name for name, p in model.named_parameters()}
    rows = [tuple(names[id(p)] for p in group) for one in _self_attentions(model) for group in _projections(one)]
    aside = set(apart)
    left = dict.fromkeys(name for name in names.values() if name not in aside)
    together = {name: group for group in rows if all(one in left for one in group) for name in group}
    return list(dict.fromkeys(together.get(name, (name,)) for name in left))


def _join(model: Transformer) -> None:
    """Say of each self-attention that its projections lie below each other, if they do."""
    for attention in _self_attentions(model):
        groups = _projections(attention)
        if all(p.dtype == torch.float32 for group in groups for p in group):
            weight, *bias = (_joined(group) for group in groups)
            attention.q_proj.joined = weight, bias[0] if bias else None


def _joined(group: tuple[nn.Parameter, ...]) -> Tensor:
    """The one matrix or vector that the parameters of a group are the rows of."""
    first = group[0].data
    return first.as_strided((sum(len(p) for p in group), *first.shape[1:]), first.stride())
