"""One weight is followed from step to step up to the model's own numbers; the first one shown is worth a look."""

import math

import numpy as np
import pytest

from tests.transformer.tiny import random_ids, tiny_model
from transformer.analysis.one_weight import (
    LEAST_KEYS,
    MIDDLE,
    hardest_step,
    place,
    sites,
    strongest,
    walk,
    worth_seeing,
)
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of
from transformer.runs.running import replay, run

KINDS = ("encoder", "decoder", "cross")


@pytest.fixture(scope="module", params=["pair", "shared"])
def checkpoint(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("ba lo mi ta", max_new=9))


def walks(checkpoint, trace, kind, *, layer=1, head=2, query=3, key=2, **more):
    recorded = replay(checkpoint, trace, sites(kind, layer))
    return walk(recorded, checkpoint.model, kind=kind, layer=layer, head=head, query=query, key=key, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stages_follow_from_each_other(checkpoint, trace, kind):
    found = walks(checkpoint, trace, kind)
    assert math.isclose(found.products.sum(), found.dots[2])
    assert np.allclose(found.scores * math.sqrt(found.d_head), found.dots)
    assert found.peak == found.scores[found.allowed].max()
    assert np.array_equal(np.isneginf(found.masked), ~found.allowed)
    assert np.array_equal(found.exps[found.allowed], np.exp(found.scores - found.peak)[found.allowed])
    assert math.isclose(found.weights.sum(), 1)
    assert np.array_equal(found.weights == 0, ~found.allowed)
    assert np.allclose(found.weighted.sum(axis=0), found.head_out)
    assert np.allclose(found.w_o @ found.head_out, found.shares[2])
    assert np.allclose(found.norms, [math.hypot(*share) for share in found.shares])
    assert np.allclose(found.shares.sum(axis=0) + found.bias, found.output)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_recorded_the_same_within_what_is_said(checkpoint, trace, kind):
    found = walks(checkpoint, trace, kind)
    name = place(kind, 1)
    more = [f"{name}.{part}" for part in ("queries", "keys", "values", "mask")]
    recorded = replay(checkpoint, trace, [*sites(kind, 1), *more])
    for part, value in {"scores": found.scores, "weights": found.weights}.items():
        assert np.abs(value - recorded[f"{name}.{part}"][2, 3]).max() == getattr(found.differences, part) < 1e-5
    assert np.abs(found.head_out - recorded[f"{name}.heads"][2, 3]).max() == found.differences.head < 1e-5
    assert np.abs(found.output - recorded[f"{name}.output"][3]).max() == found.differences.output < 1e-5
    assert np.abs(found.q - recorded[f"{name}.queries"][2, 3]).max() < 1e-5
    assert np.abs(found.keys - recorded[f"{name}.keys"][2]).max() < 1e-5
    assert np.abs(found.values - recorded[f"{name}.values"][2]).max() < 1e-5
    assert np.array_equal(found.allowed, trace.mask(kind)[3])


def test_a_row_that_sees_no_key():
    model, recorder = tiny_model(), Recorder(["encoder.1.self_attn.*"])
    model(random_ids(1, 6), random_ids(1, 3), tap=tap_of(recorder))
    recorded = {site: value[0].numpy() for site, value in recorder.values.items()}
    recorded["encoder.1.self_attn.mask"] = np.zeros((1, 1, 6), bool)
    found = walk(recorded, model, kind="encoder", layer=1, head=0, query=0)
    assert (found.key, found.peak, found.total) == (0, None, 0)
    assert not found.weights.any()
    assert np.array_equal(found.output, found.bias)


def test_the_strongest_key_is_taken_when_none_is_named(checkpoint, trace):
    for query in range(3):
        found = walks(checkpoint, trace, "cross", query=query, key=None)
        assert found.key == int(trace.cross[1, 2, query].argmax())
    assert strongest(np.array([0.2, 0.4, 0.4]), np.array([True, True, True])) == 1
    assert strongest(np.array([0.9, 0.0, 0.1]), np.array([False, True, True])) == 2
    assert strongest(np.zeros(3), np.zeros(3, bool)) == 0


def test_keys_of_the_future_can_be_left_out_and_others_not(checkpoint, trace):
    whole, cut = (walks(checkpoint, trace, "decoder", query=3, key=1, n_keys=n) for n in (None, 4))
    assert len(cut.weights) == len(cut.keys) == len(cut.allowed) == 4
    assert np.allclose(cut.weights, whole.weights[:4])
    assert np.allclose(cut.output, whole.output)
    assert cut.differences.output < 1e-5
    with pytest.raises(QueryError, match="row 4 sees keys after key 3"):
        walks(checkpoint, trace, "decoder", query=3, key=1, n_keys=3)


@pytest.mark.parametrize(
    ("wrong", "said"), [({"head": 4}, "head 5"), ({"query": 99}, "row 100"), ({"key": -1}, "key 0")]
)
def test_what_does_not_exist_is_refused(checkpoint, trace, wrong, said):
    with pytest.raises(QueryError, match=f"{said} does not exist"):
        walks(checkpoint, trace, "cross", **wrong)


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
