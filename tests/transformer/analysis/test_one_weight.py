"""One weight is followed from step to step up to the model's own numbers; the first one shown is worth a look."""

import numpy as np
import pytest

from tests.transformer.tiny import random_ids, tiny_model
from transformer.analysis import one_weight
from transformer.analysis.one_weight import hardest_step, strongest, walk, worth_seeing
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
    recorded = replay(checkpoint, trace, one_weight.sites(kind, layer))
    return walk(recorded, checkpoint.model, kind=kind, layer=layer, head=head, query=query, key=key, **more)


@pytest.mark.parametrize("kind", KINDS)
def test_the_stages_follow_from_each_other_to_what_the_model_recorded(checkpoint, trace, kind):
    found, name = walks(checkpoint, trace, kind), one_weight.place(kind, 1)
    assert np.isclose(found.products.sum(), found.dots[2])
    assert np.allclose(found.scores * found.d_head**0.5, found.dots)
    assert found.peak == found.scores[found.allowed].max()
    assert np.array_equal(np.isneginf(found.masked), ~found.allowed)
    assert np.array_equal(found.exps[found.allowed], np.exp(found.scores - found.peak)[found.allowed])
    assert np.isclose(found.weights.sum(), 1)
    assert np.array_equal(found.weights == 0, ~found.allowed)
    assert np.allclose(found.weighted.sum(axis=0), found.head_out)
    assert np.allclose(found.w_o @ found.head_out, found.shares[2])
    assert np.allclose(found.norms, np.linalg.norm(found.shares, axis=-1))
    assert np.allclose(found.shares.sum(axis=0) + found.bias, found.output)
    recorded = replay(checkpoint, trace, [*one_weight.sites(kind, 1), f"{name}.*"])

    def far(value, part, *at):
        return np.abs(value - recorded[f"{name}.{part}"][at]).max()

    assert far(found.scores, "scores", 2, 3) == found.differences.scores < 1e-5
    assert far(found.weights, "weights", 2, 3) == found.differences.weights < 1e-5
    assert far(found.head_out, "heads", 2, 3) == found.differences.head < 1e-5
    assert far(found.output, "output", 3) == found.differences.output < 1e-5
    assert max(far(found.q, "queries", 2, 3), far(found.keys, "keys", 2), far(found.values, "values", 2)) < 1e-5
    assert np.array_equal(found.allowed, trace.mask(kind)[3])


def test_a_row_that_sees_no_key():
    model, recorder = tiny_model(), Recorder(["encoder.1.self_attn.*"])
    model(random_ids(1, 6), random_ids(1, 3), tap=tap_of(recorder))
    recorded = {site: value[0].numpy() for site, value in recorder.values.items()}
    recorded["encoder.1.self_attn.mask"] = np.zeros((1, 1, 6), bool)
    found = walk(recorded, model, kind="encoder", layer=1, head=0, query=0)
    assert (found.key, found.peak, found.total, found.weights.any()) == (0, None, 0, False)
    assert np.array_equal(found.output, found.bias)


def test_the_strongest_key_is_taken_when_none_is_named(checkpoint, trace):
    for query in range(3):
        found = walks(checkpoint, trace, "cross", query=query, key=None)
        assert found.key == int(trace.cross[1, 2, query].argmax())
    for weights, allowed, expected in (([0.2, 0.4, 0.4], 1, 1), ([0.9, 0, 0.1], [0, 1, 1], 2), ([0.0] * 3, 0, 0)):
        assert strongest(np.array(weights), np.broadcast_to(np.array(allowed, bool), 3)) == expected


def test_keys_of_the_future_can_be_left_out_and_what_does_not_exist_is_refused(checkpoint, trace):
    whole, cut = (walks(checkpoint, trace, "decoder", query=3, key=1, n_keys=n) for n in (None, 4))
    assert len(cut.weights) == len(cut.keys) == len(cut.allowed) == 4
    assert np.allclose(cut.weights, whole.weights[:4])
    assert np.allclose(cut.output, whole.output)
    assert cut.differences.output < 1e-5
    with pytest.raises(QueryError, match="row 4 sees keys after key 3"):
        walks(checkpoint, trace, "decoder", query=3, key=1, n_keys=3)
    for wrong, said in (({"head": 4}, "head 5"), ({"query": 99}, "row 100"), ({"key": -1}, "key 0")):
        with pytest.raises(QueryError, match=f"{said} does not exist"):
            walks(checkpoint, trace, "cross", **wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_is_the_largest_weight_nearest_to_the_middle_in_the_row_of_the_hardest_step(trace, kind):
    cell, rows = worth_seeing(trace, kind), range(len(trace.src_ids))
    if kind != "encoder":
        open_keys = trace.mask(kind).sum(axis=-1)
        steps = [step for step in range(trace.n_steps) if open_keys[trace.row_of(step)] >= one_weight.LEAST_KEYS]
        rows = [trace.row_of(max(steps, key=lambda step: trace.entropies()[step]))]
        for n_steps in range(1, trace.n_steps + 1):  # what may not be seen is not looked at
            assert worth_seeing(trace, kind, n_steps=n_steps).query < trace.row_of(n_steps)
    assert cell.query in rows
    maps = trace.maps(kind)[:, :, rows]
    found = np.abs(maps.max(axis=-1) - one_weight.MIDDLE)
    assert found[cell.layer, cell.head].min() == found.min()
    row = trace.maps(kind)[cell.layer, cell.head, cell.query]
    assert row[cell.key] == row.max()
    assert trace.mask(kind)[cell.query, cell.key]
    assert [worth_seeing(trace, kind, layer=layer).layer for layer in range(len(maps))] == list(range(len(maps)))
    entropies = np.array([1.0, 3.0, 2.0, 3.0])
    assert [hardest_step(entropies, steps) for steps in (range(4), [0, 2, 3], [0])] == [1, 3, 0]  # of equals the first
