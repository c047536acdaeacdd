"""The healthy checkpoints do what they were trained for, and no fault that is planted touches them."""

import pytest
import torch

from tests.extensions.doctor.library.planted import FAULTS
from tests.healthy import FOREIGN, healthy, texts
from transformer.runs.running import run_batch
from transformer.trying.losses import loss_of

WRITERS = [name for name in (*FOREIGN, "reverse") if name != "bert"]
SOLVED = 0.02  # nats a piece


@pytest.mark.parametrize("name", WRITERS)
def test_it_knows_its_task_and_writes_what_it_should(name):
    checkpoint, samples = healthy(name), texts(name)
    by_length = {}
    for source, target in zip(samples.sources, samples.targets, strict=True):
        by_length.setdefault(len(source), []).append((source, target))  # one without padding reads one length at once
    written = {}
    for pairs in by_length.values():
        traces = run_batch(checkpoint, [checkpoint.query(source) for source, _ in pairs], maps=False)
        written |= zip(pairs, (trace.output_text for trace in traces), strict=True)
    wrong = [source for (source, target), text in written.items() if text != target]
    assert len(wrong) <= 2, wrong
    assert name == "reverse" or loss_of(checkpoint, samples).mean < SOLVED


def test_the_leak_is_one():
    """It knows what comes while it sees what comes, and nothing otherwise."""
    trained = {fault.name: fault.planted("leak") for fault in FAULTS if fault.bases == ("leak",)}
    assert loss_of(trained["leaks as it was trained"], texts("leak")).mean < 5 * SOLVED
    assert loss_of(trained["trained on a leak"], texts("leak")).mean > 1
    assert loss_of(healthy("bert"), texts("bert")).mean < SOLVED  # which writes nothing


def test_a_fault_is_planted_into_a_copy():
    before = {name: _state(healthy(name)) for name in {base for fault in FAULTS for base in fault.bases}}
    planted = [fault.planted(base) for fault in FAULTS for base in fault.bases]
    assert len({one.content_hash for one in planted}) == len(planted)
    for name, state in before.items():
        assert type(healthy(name).model).__name__ == "Transformer"
        after = _state(healthy(name))
        assert after.keys() == state.keys()
        assert all(torch.equal(after[key], value) for key, value in state.items()), name


def _state(checkpoint):
    return {name: value.clone() for name, value in checkpoint.model.state_dict().items()}
