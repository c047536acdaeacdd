"""The weight shown first is one worth a look, chosen from the run alone."""

import numpy as np
import pytest

import transformer
from transformer.analysis.one_weight import LEAST_KEYS, MIDDLE, hardest_step, worth_seeing
from transformer.runs.running import run

KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module", params=["checkpoint_folder", "shared_checkpoint_folder"])
def trace(request):
    checkpoint = transformer.load(request.getfixturevalue(request.param))
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def test_the_hardest_step_is_that_of_the_highest_entropy_and_of_equals_the_first():
    entropies = np.array([1.0, 3.0, 2.0, 3.0])
    assert hardest_step(entropies, range(4)) == 1
    assert hardest_step(entropies, [0, 2, 3]) == 3
    assert hardest_step(entropies, [0]) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_largest_weight_nearest_to_the_middle_in_the_row_of_the_hardest_step(trace, kind):
    cell = worth_seeing(trace, kind)
    if kind != "encoder":
        open_keys = trace.mask(kind).sum(axis=-1)
        steps = [step for step in range(trace.n_steps) if open_keys[trace.row_of(step)] >= LEAST_KEYS]
        assert cell.query == trace.row_of(max(steps, key=lambda step: trace.entropies()[step]))
    rows = range(len(trace.src_ids)) if kind == "encoder" else [cell.query]
    maps = trace.maps(kind)[:, :, rows]
    found = np.abs(maps.max(axis=-1) - MIDDLE)
    assert found[cell.layer, cell.head].min() == found.min()
    row = trace.maps(kind)[cell.layer, cell.head, cell.query]
    assert row[cell.key] == row.max()
    assert trace.mask(kind)[cell.query, cell.key]
    for layer in range(len(maps)):
        assert worth_seeing(trace, kind, layer=layer).layer == layer


def test_what_may_not_be_seen_is_not_looked_at(trace):
    for n_steps in range(1, trace.n_steps + 1):
        for kind in ("decoder", "cross"):
            assert worth_seeing(trace, kind, n_steps=n_steps).query < trace.row_of(n_steps)
