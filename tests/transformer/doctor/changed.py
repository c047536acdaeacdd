"""A healthy checkpoint with one thing changed, for tests of the doctor."""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch

from transformer.checkpoint.load import Checkpoint
from transformer.model.transformer import Transformer


def changed(checkpoint: Checkpoint, change: Callable[[Transformer], object]) -> Checkpoint:
    """The checkpoint with a copy of its model that a function has changed."""
    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        change(model)
    return replace(checkpoint, model=model)
