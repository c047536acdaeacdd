"""Weights that a file holds in parts: as a length and a direction, as an adapter beside them, or as small integers.

A weight in parts is not the weight. What `torch.nn.utils.weight_norm` writes is put together again, the rest is
refused by what it is: half of it would match a table, and the other half would look like something to leave out.

Source: Salimans and Kingma, "Weight Normalization" (2016): w = g v / ||v||; and the names that PyTorch, PEFT,
loralib, bitsandbytes, GPTQ and AWQ write.
"""

import re
from collections.abc import Iterable, Mapping

from torch import Tensor

from transformer.errors import CheckpointError, shown
from transformer.files.tensorfile import TensorInfo
from transformer.i18n import Sentence, say

# A length and a direction: the end of their names, and what stands for both in the name of the weight.
_NORMED = (("weight_g", "weight_v"), ("parametrizations.weight.original0", "parametrizations.weight.original1"))
_MERGE = say("Merge the adapter into the weights (PEFT: `merge_and_unload()`), and save the merged model.")
_QUANTISED = say("a quantised weight")
_REMOVE = say("Remove the parametrisation (`torch.nn.utils.parametrize.remove_parametrizations`), and save again.")
_KINDS: tuple[tuple[str, Sentence, Sentence], ...] = (  # what a name has in it
    (r"(^|\.)(lora_\w+|base_layer)(\.|$)", say("an adapter (LoRA)"), _MERGE),
    (
        r"(^|\.)(qweight|qzeros|g_idx|SCB|weight_format|_packed_params|weight_scale(_inv)?|weight_zero_point)(\.|$)"
        r"|weight\.(absmax|nested_absmax|quant_map|nested_quant_map|quant_state\.\w+)$",
        _QUANTISED,
        say("Save the model without quantisation, in float32 or a 16-bit format."),
    ),
    (r"(weight|bias)_(orig|mask)$", say("a weight with spectral normalisation or pruning"), _REMOVE),
    (r"(^|\.)parametrizations\.", say("a parametrised weight"), _REMOVE),
)
_SMALL = ("I8", "U8", "F8_E4M3", "F8_E5M2")


def in_two(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The weights that are there as a length and a direction: the weight's name -> the names of both."""
    there = set(names)
    return {
        f"{name.removesuffix(length)}weight": (name, name.removesuffix(length) + direction)
        for name in there
        for length, direction in _NORMED
        if name.endswith(length) and name.removesuffix(length) + direction in there
    }


def together(length: Tensor, direction: Tensor) -> Tensor:
    """The weight of a length g and a direction v, of which each axis is summed that g has not."""
    axes = [axis for axis in range(direction.dim()) if length.dim() != direction.dim() or length.size(axis) == 1]
    return direction * (length / direction.norm(dim=axes, keepdim=True))


def check(tensors: Mapping[str, TensorInfo], *, label: str) -> None:
    """Refuse a file that holds weights in parts; names the first one and how to save them."""
    for name, info in tensors.items():
        is_small = name.endswith("weight") and len(info.shape) == 2 and info.dtype in _SMALL
        for pattern, what, remedy in _KINDS:
            if re.search(pattern, name) or (is_small and what is _QUANTISED):
                raise CheckpointError(
                    "{label}: tensor {tensor} is part of {what}, not a plain weight. {remedy}",
                    label=label,
                    tensor=shown(name),
                    what=what,
                    remedy=remedy,
                )
