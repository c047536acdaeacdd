"""Every measure of heads is what a plain loop over the weights gives, of the rows that count."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.test_checkpoints import FOLDER
from transformer import load, run, run_batch
from transformer.analysis import head_statistics as hs
from transformer.runs.running import replay

KINDS = ("encoder", "decoder", "cross")
CLOSE = {"rtol": 0, "atol": 1e-9}


def by_hand(row, allowed, *, query, n_queries):
    """Every measure of one row as a dictionary; what the row does not have is left out."""
    n_keys = len(row)
    open_keys = [k for k in range(n_keys) if allowed[k]]
    places = [query / max(n_queries - 1, 1), *(k / max(n_keys - 1, 1) for k in range(n_keys))]
    found = {
        "entropy": -sum(row[k] * math.log(row[k], 2) for k in open_keys if row[k] > 0),
        "largest": max(row[k] for k in open_keys),
        "distance": sum(row[k] * abs(query - k) for k in open_keys),
        "relative_distance": sum(row[k] * abs(places[0] - places[k + 1]) for k in open_keys),
    }
    if len(open_keys) > 1:
        found["entropy_share"] = found["entropy"] / math.log(len(open_keys), 2)
    for name, key in {"self": query, "previous": query - 1, "next": query + 1, "first": 0, "end": n_keys - 1}.items():
        if key in open_keys:
            found[name] = row[key]
    place = query * (n_keys - 1) / max(n_queries - 1, 1)
    return found | {"diagonal": row[min(range(n_keys), key=lambda k: (abs(k - place), -k))]}


def functions(weights, allowed):
    return {
        "entropy": hs.entropy(weights),
        "entropy_share": hs.entropy_share(weights, allowed),
        "largest": hs.largest(weights),
        "distance": hs.distance(weights),
        "relative_distance": hs.relative_distance(weights),
        **{name: hs.share_at(weights, allowed, offset=n) for name, n in (("self", 0), ("previous", -1), ("next", 1))},
        "first": hs.share_on(weights, allowed, key=0),
        "end": hs.share_on(weights, allowed, key=weights.shape[-1] - 1),
        "diagonal": hs.share_on_diagonal(weights),
    }


@pytest.mark.parametrize("shape", [(6, 6), (4, 7), (7, 4), (1, 5), (1, 1)])
@pytest.mark.parametrize("mask", ["none", "causal", "holes"])
@pytest.mark.parametrize("rows", ["random", "even", "on one key"])
def test_each_row_is_what_a_plain_loop_gives(shape, mask, rows, monkeypatch):
    monkeypatch.setattr(hs, "_AT_ONCE", 20 if mask == "causal" else 2**16)  # a few rows at a time, or all
    chance = np.random.default_rng(8)
    allowed = np.ones(shape, dtype=bool)
    if mask != "none":
        allowed = np.tri(*shape, dtype=bool) if mask == "causal" else chance.random(shape) < 0.6
        allowed[:, 0] = True
    raw = {"random": chance.random((2, 3, *shape)) ** 4, "even": np.ones((2, 3, *shape))}
    weights = raw.get(rows, np.eye(shape[1])[np.zeros((2, 3, shape[0]), int)]) * allowed
    weights /= weights.sum(axis=-1, keepdims=True)
    for name, values in functions(weights, allowed).items():
        assert values.shape == (2, 3, shape[0])
        assert not np.signbit(values[~np.isnan(values)]).any(), name  # no -0.0
        for (layer, head, query), value in np.ndenumerate(values):
            expected = by_hand(weights[layer, head, query], allowed[query], query=query, n_queries=shape[0])
            assert math.isnan(value) if name not in expected else value == pytest.approx(expected[name], abs=1e-12)


@pytest.fixture(scope="module")
def checkpoint():
    return load(FOLDER / "reverse")


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query("abcdef"))


def shares_of(checkpoint, trace, kind):
    sites = [hs.outputs_site(kind, layer) for layer in range(len(trace.maps(kind)))]
    heads = replay(checkpoint, trace, sites)
    return hs.norm_share(np.stack([heads[name] for name in sites]), hs.output_projections(checkpoint.model, kind))


def measured(checkpoint, trace, kind, **options):
    shares = shares_of(checkpoint, trace, kind)
    return hs.measure_by_layer(checkpoint, trace, kind, shares=shares, **options)


EXPECTED = {
    "encoder": ["entropy", "entropy_share", "largest", "distance", "self", "previous", "next", "first", "end"],
    "decoder": ["entropy", "entropy_share", "largest", "distance", "self", "previous", "first"],
    "cross": ["entropy", "entropy_share", "largest", "distance", "first", "end", "diagonal"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_has_its_kinds_measures_and_their_means_over_all_rows(checkpoint, trace, kind):
    measures = measured(checkpoint, trace, kind)
    assert list(measures) == [*EXPECTED[kind], "norm_share"]
    expected = functions(trace.maps(kind).astype(np.float64), trace.mask(kind))
    for name in EXPECTED[kind]:
        by_name = "relative_distance" if (kind, name) == ("cross", "distance") else name
        np.testing.assert_allclose(measures[name].means(), np.nanmean(expected[by_name], axis=-1), **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
def test_the_heads_parts_add_up_to_what_the_attention_wrote(checkpoint, trace, kind):
    recorded, attentions = replay(checkpoint, trace, ["*_attn.*"]), checkpoint.model.attentions(kind)
    shares = shares_of(checkpoint, trace, kind)
    for layer, part in enumerate(hs.output_projections(checkpoint.model, kind)):
        site = hs.outputs_site(kind, layer)
        written = recorded[site] @ part  # [head, query, d_model]
        total = written.sum(axis=0) + attentions[layer].out_proj.bias.numpy(force=True)
        np.testing.assert_allclose(total, recorded[site.replace("heads", "output")], rtol=0, atol=1e-5)
        norms = np.linalg.norm(written, axis=-1)
        np.testing.assert_allclose(shares[layer], norms / norms.sum(axis=0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["decoder", "cross"])
def test_only_the_rows_that_may_be_seen_count(checkpoint, trace, kind):
    n_rows = 3
    measures = measured(checkpoint, trace, kind, n_rows=n_rows)
    expected = hs.entropy(trace.maps(kind).astype(np.float64))[..., :n_rows].mean(axis=-1)
    np.testing.assert_allclose(measures["entropy"].means(), expected, **CLOSE)
    assert all(not one.rows[n_rows:].any() and np.isnan(one.values[..., n_rows:]).all() for one in measures.values())
    changed = trace.maps(kind).copy()
    changed[:, :, n_rows:] = 0
    other = measured(checkpoint, replace(trace, weights={**trace.weights, kind: changed}), kind, n_rows=n_rows)
    for name, one in measures.items():
        np.testing.assert_array_equal(other[name].means(), one.means())
    some, all_rows = measured(checkpoint, trace, "encoder", n_rows=1), measured(checkpoint, trace, "encoder")
    np.testing.assert_array_equal(some["entropy"].means(), all_rows["entropy"].means())
    first = ["entropy", "largest", "distance", "self", "first", "norm_share"]
    assert list(measured(checkpoint, trace, "decoder", n_rows=1)) == first


def test_padding_of_a_batch_and_a_row_without_an_open_key_do_not_count(checkpoint, trace):
    alone = run(checkpoint, checkpoint.query("noon"))
    padded = run_batch(checkpoint, [checkpoint.query(text) for text in ("noon", "transformer")])[0]
    assert len(padded.src_ids) > len(alone.src_ids)
    for kind in KINDS:
        one, other = (hs.measure_by_layer(checkpoint, trace, kind) for trace in (alone, padded))
        assert list(one) == list(other)
        for name in one:
            np.testing.assert_allclose(other[name].means(), one[name].means(), rtol=0, atol=1e-5)
    allowed, weights = trace.encoder_mask.copy(), trace.encoder_self.copy()
    allowed[2], weights[:, :, 2] = False, 0
    changed = replace(trace, masks={**trace.masks, "encoder": allowed}, weights={**trace.weights, "encoder": weights})
    measures = hs.measure_by_layer(checkpoint, changed, "encoder")
    assert np.flatnonzero(~measures["entropy"].rows).tolist() == [2]
    expected = np.delete(hs.largest(trace.encoder_self.astype(np.float64)), 2, axis=-1).mean(axis=-1)
    np.testing.assert_allclose(measures["largest"].means(), expected, **CLOSE)


def test_weights_alone_have_the_measures_of_a_run_but_for_what_only_the_run_knows(checkpoint, trace):
    for kind in trace.kinds:
        whole = hs.measure_by_layer(checkpoint, trace, kind)
        alone = hs.measure_maps(trace.maps(kind), trace.mask(kind), kind)
        assert set(whole) - set(alone) == ({"end"} if kind != "decoder" else set())
        for name in alone:
            np.testing.assert_array_equal(alone[name].values, whole[name].values)
    names = set(hs.measure_maps(np.full((1, 2, 3, 5), 0.2), np.ones((3, 5), bool), "decoder"))
    assert names == {"entropy", "entropy_share", "largest", "first"}  # other keys than queries have no distances
