"""Checkpoints with features of positions and attention run, and are looked at, as the paper's are."""

import numpy as np
import pytest

from tests.transformer.featured import FEATURED, featured
from transformer import Beam, Greedy, Sampling
from transformer.analysis import one_weight
from transformer.analysis.head_statistics import measure_by_layer
from transformer.runs.running import replay, run_batch


@pytest.fixture(scope="module", params=["pair", *FEATURED])
def checkpoint(request, tmp_path_factory):
    if request.param == "pair":
        return request.getfixturevalue("pair")
    return featured(request.param, tmp_path_factory.mktemp("featured"))


@pytest.fixture(scope="module")
def trace(checkpoint):
    return checkpoint.run(checkpoint.query("ba lo mi ta", max_new=8))


def test_a_loaded_model_decodes_what_one_pass_says_and_heads_are_measured_by_the_keys_that_they_see(checkpoint, trace):
    """Decoded step by step with a cache, from parameters that lie joined; read again in one recorded pass."""
    if trace.n_steps:
        best = trace.log_probs.copy()
        best[:, checkpoint.config.pad_id] = -np.inf
        assert best.argmax(axis=-1).tolist() == list(trace.tgt_ids)
    for kind in trace.kinds:
        for layer, maps in enumerate(trace.maps(kind)):
            np.testing.assert_allclose(maps.sum(-1), 1, atol=1e-5)
            assert (maps[:, ~trace.mask(kind, layer)] == 0).all()
            assert (maps[:, trace.mask(kind, layer)] > 0).all()
        share = measure_by_layer(checkpoint, trace, kind)["entropy_share"].values
        assert np.nanmax(share) <= 1 + 1e-6
        if checkpoint.config.windows:
            assert np.isnan(share[2][:, 0]).all()
            assert trace.mask(kind, 2).sum(-1).max() == 2


def test_one_weight_is_what_the_model_computed(checkpoint, trace):
    for kind in trace.kinds:
        for layer, maps in enumerate(trace.maps(kind)):
            found = replay(checkpoint, trace, one_weight.sites(kind, layer, config=checkpoint.config))
            for head, weights in enumerate(maps):
                walk = one_weight.walk(found, checkpoint.model, kind=kind, layer=layer, head=head, query=2)
                assert max(vars(walk.differences).values()) < 1e-5
                np.testing.assert_allclose(walk.weights, weights[2], atol=1e-5)


def test_a_batch_is_what_its_sentences_are_alone(checkpoint):
    ways = [{}]
    if checkpoint.model.anatomy.writes:
        ways += [{"decoding": Beam(size=3), "hypothesis": 2}, {"decoding": Beam(size=3), "forced": (9,)}]
        ways += [{"decoding": Sampling(temperature=0.8, seed=4)}, {"decoding": Greedy(), "forced": (7, 3)}]
    settings = [{"max_new": 8, **way} for way in ways] + [{"max_new": 3}, {"max_new": 512}]
    queries = [checkpoint.query(text, **how) for text in ("ba lo mi ta", "lo") for how in settings]
    batch, bare = run_batch(checkpoint, queries), run_batch(checkpoint, queries, maps=False)
    assert [one.tgt_ids for one in bare] == [one.tgt_ids for one in batch]
    assert all(one.maps(kind).shape[2:] == (0, 0) for one in bare for kind in one.kinds)
    for query, together in zip(queries, batch, strict=True):
        one, pad = checkpoint.run(query), (checkpoint.config.pad_id,)
        for field in ("query", "notes", "source_text", "tgt_ids", "tgt_tokens", "texts", "stop_reason"):
            assert getattr(together, field) == getattr(one, field)
        assert [h.ids for h in together.hypotheses] == [h.ids for h in one.hypotheses]
        for field in ("src_ids", "read_ids"):
            own, found = getattr(one, field), getattr(together, field)
            assert found == own + pad * (len(found) - len(own))
        for labels in ([found.row_labels() for found in (one, together)], [one.src_tokens, together.src_tokens]):
            assert labels[1][: len(labels[0])] == labels[0]
        np.testing.assert_allclose(together.log_probs, one.log_probs, rtol=1e-4, atol=1e-4)
        assert together.log_prob == pytest.approx(one.log_prob, abs=1e-4)
        for kind in one.kinds:
            n_queries, n_keys = one.maps(kind).shape[2:]
            assert together.n_tokens(kind) == one.n_tokens(kind)
            assert (together.mask(kind)[..., :n_queries, :n_keys] == one.mask(kind)).all()
            np.testing.assert_allclose(together.maps(kind)[:, :, :n_queries, :n_keys], one.maps(kind), atol=1e-5)
            assert (together.maps(kind)[:, :, :n_queries, n_keys:] == 0).all()
