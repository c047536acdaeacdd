"""A checkpoint like another one but for a change of its model; the other one stays as it is."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from glassformer.extensions.doctor.library.context import DoctorTest, ExaminationContext
from glassformer.extensions.doctor.library.findings import DoctorTestResult, Finding, Verdict
from glassformer.extensions.doctor.library.report import TESTS, run_test
from transformer.analysis.losses import Samples
from transformer.checkpoint.load import Checkpoint
from transformer.model.module import Linear
from transformer.model.transformer import Transformer

BY_NAME = {test.name: test for test in TESTS}


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
    return run_test(BY_NAME[name], ExaminationContext(checkpoint, pairs, seed))


def look(name: str, checkpoint: Checkpoint, given: Samples | None = None) -> DoctorTestResult:
    """What one test measures; whatever stops it stops the caller."""
    return BY_NAME[name].measure(ExaminationContext(checkpoint, given))


def verdicts(tests: Sequence[DoctorTest], patient: ExaminationContext) -> dict[str, Verdict]:
    """What several tests think of a patient."""
    return {test.name: test.measure(patient).verdict for test in tests}
