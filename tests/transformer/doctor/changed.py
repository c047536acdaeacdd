"""A checkpoint like another one but for a change of its model; the other one stays as it is."""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch

from transformer.checkpoint.load import Checkpoint
from transformer.doctor.examination import TESTS, run_test
from transformer.doctor.findings import Finding
from transformer.doctor.patient import Patient
from transformer.model.linear import Linear
from transformer.model.transformer import Transformer
from transformer.trying.samples import Samples


@torch.no_grad()
def changed(checkpoint: Checkpoint, change: Callable[[Transformer], object]) -> Checkpoint:
    """The checkpoint with a changed copy of its model."""
    model = copy.deepcopy(checkpoint.model)
    for module in model.modules():
        if isinstance(module, Linear):
            module.joined = None  # those that lie below each other are copies now
    change(model)
    return replace(checkpoint, model=model, config=model.config)


def found(checkpoint: Checkpoint, name: str, *, pairs: Samples | None = None, seed: int = 0) -> Finding:
    """What one test finds."""
    (test,) = (one for one in TESTS if one.name == name)
    return run_test(test, Patient(checkpoint, pairs, seed))
