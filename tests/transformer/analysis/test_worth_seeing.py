"""The weight that is worth a first look: from the run alone, in a row that has something to share out."""

import numpy as np
import pytest

import transformer
from transformer.analysis.default_cell import LEAST_KEYS, MIDDLE, hardest_step, worth_seeing
from transformer.runs.running import run

KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module", params=["checkpoint_folder", "shared_checkpoint_folder"])
def trace(request):
    checkpoint = transformer.load(request.getfixturevalue(request.param))
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def distances(trace, kind, rows):
    """How far the largest weight of each row is from the middle, [layer, head, row], by plain loops."""
    maps = trace.maps(kind)
    return np.array([[[abs(max(head[row]) - MIDDLE) for row in rows] for head in layer] for layer in maps])


def test_the_hardest_step_is_that_of_the_highest_entropy_and_of_equals_the_first():
    entropies = np.array([1.0, 3.0, 2.0, 3.0])
    assert hardest_step(entropies, range(4)) == 1
    assert hardest_step(entropies, [0, 2, 3]) == 3
    assert hardest_step(entropies, [0]) == 0


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_the_decoders_row_is_that_of_the_hardest_step_with_keys_to_share_among(trace, kind):
    cell = worth_seeing(trace, kind)
    open_keys = trace.mask(kind).sum(axis=-1)
    steps = [step for step in range(trace.n_steps) if open_keys[trace.row_of(step)] >= LEAST_KEYS]
    assert cell.query == trace.row_of(max(steps, key=lambda step: trace.entropies()[step]))


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_head_has_a_largest_weight_nearer_to_the_middle(trace, kind):
    cell = worth_seeing(trace, kind)
    rows = range(len(trace.src_ids)) if kind == "encoder" else [cell.query]
    found = distances(trace, kind, rows)
    assert found[cell.layer, cell.head].min() == found.min()


@pytest.mark.parametrize("kind", KINDS)
def test_the_key_has_the_largest_weight_of_its_row_and_is_open(trace, kind):
    cell = worth_seeing(trace, kind)
    row = trace.maps(kind)[cell.layer, cell.head, cell.query]
    assert row[cell.key] == row.max()
    assert trace.mask(kind)[cell.query, cell.key]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_looked_for_in_one_layer_where_that_is_asked(trace, kind):
    for layer in range(len(trace.maps(kind))):
        assert worth_seeing(trace, kind, layer=layer).layer == layer


def test_what_may_not_be_seen_is_not_looked_at(trace):
    for n_steps in range(1, trace.n_steps + 1):
        for kind in ("decoder", "cross"):
            assert worth_seeing(trace, kind, n_steps=n_steps).query < trace.row_of(n_steps)


def test_the_same_run_has_the_same_cell(trace):
    assert worth_seeing(trace, "cross") == worth_seeing(trace, "cross")
