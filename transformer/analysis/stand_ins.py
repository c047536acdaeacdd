"""Placeholder tensors: they take the place of parts that a model lacks, and count for nothing.

The smallest models of articles leave parts out; an import fills their places with matrices that change nothing (see
`extensions.importers.library.renaming`). They are known by their values: an output projection or a second linear map
that is exactly the identity, a table of embeddings that holds the unit vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from transformer.i18n import Sentence, say

if TYPE_CHECKING:
    from transformer.model.transformer import Transformer

PROJECTION, MAP, TABLE = ".out_proj.weight", ".ffn.down_proj.weight", "src_table"
SAID: dict[str, Sentence] = {
    PROJECTION: say("The model has no output projection; an identity matrix takes its place and is not counted."),
    MAP: say(
        "The feed-forward network is a single linear map; an identity matrix takes the place of the second one and "
        "is not counted."
    ),
    TABLE: say("The model has no embeddings; unit vectors take their place and are not counted."),
}
_FOUND: WeakKeyDictionary[Transformer, frozenset[str]] = WeakKeyDictionary()


def stand_ins(model: Transformer) -> frozenset[str]:
    """The names of a model's placeholder tensors, with their biases."""
    if model not in _FOUND:
        tensors = dict(model.named_parameters())
        ends = (PROJECTION, TABLE, *((MAP,) if model.config.activation == "none" else ()))
        identities = [name for name, one in tensors.items() if name.endswith(ends) and _is_identity(one)]
        biases = (name.removesuffix("weight") + "bias" for name in identities)
        zeros = (name for name in biases if name in tensors and not tensors[name].any())
        _FOUND[model] = frozenset((*identities, *zeros))
    return _FOUND[model]


def said(names: frozenset[str], beginning: str = "") -> list[Sentence]:
    """What to say of those whose names begin so."""
    ours = [one for one in names if one.startswith(beginning)]
    return [text for end, text in SAID.items() if any(one.endswith(end) for one in ours)]


def _is_identity(one: Tensor) -> bool:
    if one.dim() != 2 or one.size(0) != one.size(1) or not bool((one.diagonal() == 1).all()):
        return False
    return int(torch.count_nonzero(one)) == len(one)
