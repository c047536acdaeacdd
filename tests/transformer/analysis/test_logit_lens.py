"""At every depth the lens gives the stream through norm and projection, and at the last the run."""

import math

import numpy as np
import pytest

from transformer.analysis.logit_lens import logit_lens, paths
from transformer.runs.running import replay, run


@pytest.fixture(scope="module", params=["pair", "shared"])
def checkpoint(request):
    """Pre-norm with a final norm, post-norm without."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def trace(checkpoint):
    return run(checkpoint, checkpoint.query(checkpoint.card.examples[0], max_new=8))


@pytest.fixture(scope="module")
def lens(checkpoint, trace):
    return logit_lens(checkpoint, trace)


def predictions(checkpoint, trace):
    """Probabilities [place, step, piece] in float64 from the parameters and the streams, without the model's code."""
    state, config = checkpoint.model.state_dict(), checkpoint.config
    names = {"pre": "residual", "post": "norm"}[config.norm]
    sites = ["decoder.embedding.output"] + [
        f"decoder.{layer}.{part}.{names}"
        for layer in range(config.n_decoder_layers)
        for part in ("self_attn", "cross_attn", "ffn")
    ]
    found = replay(checkpoint, trace, sites)
    table = state["src_table" if config.shared_vocab else "tgt_table"].double().numpy()
    result = []
    for site in sites:
        x = found[site][: trace.n_steps].astype(np.float64)
        if config.final_norm:
            weight, bias = (state[f"decoder.final_norm.{name}"].double().numpy() for name in ("weight", "bias"))
            x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + config.norm_eps) * weight + bias
        logits = x @ table.T
        exps = np.exp(logits - logits.max(1, keepdims=True))
        result.append(exps / exps.sum(1, keepdims=True))
    return np.stack(result)


def test_every_depth_is_the_stream_through_norm_and_projection(checkpoint, trace, lens):
    expected = predictions(checkpoint, trace)
    steps, ids = np.arange(trace.n_steps), np.array(trace.tgt_ids)
    np.testing.assert_allclose(lens.prob, expected[:, steps, ids], rtol=2e-4, atol=1e-9)
    order = np.argsort(-expected, axis=2, kind="stable")
    best = np.take_along_axis(expected, order[:, :, :5], axis=2)
    np.testing.assert_allclose(lens.top_probs, best, rtol=2e-4, atol=1e-9)
    np.testing.assert_allclose(np.take_along_axis(expected, lens.top_ids, axis=2), best, rtol=2e-4, atol=1e-9)
    ranks = (expected > expected[:, steps, ids][:, :, None] * (1 + 1e-4)).sum(2) + 1
    most = (expected > expected[:, steps, ids][:, :, None] * (1 - 1e-4)).sum(2)
    assert (ranks <= lens.rank).all()
    assert (lens.rank <= most).all()
    assert lens.by_layer().rank.tolist() == lens.rank[::3].tolist()


def test_entropy_and_divergence_are_sums_over_the_vocabulary(checkpoint, trace, lens):
    expected = predictions(checkpoint, trace)
    for place in range(len(lens.places)):
        for step in range(min(2, trace.n_steps)):
            here, last = expected[place, step].tolist(), expected[-1, step].tolist()
            entropy = -sum(p * math.log2(p) for p in here if p > 0)
            divergence = sum(q * math.log2(q / p) for p, q in zip(here, last, strict=True) if q > 0)
            assert lens.entropy[place, step] == pytest.approx(entropy, abs=1e-3)
            assert lens.divergence[place, step] == pytest.approx(divergence, rel=1e-3, abs=1e-3)
    np.testing.assert_allclose(lens.divergence[-1], 0, atol=1e-9)


def test_many_steps_are_read_in_blocks(checkpoint, monkeypatch, trace, lens):
    monkeypatch.setattr("transformer.analysis.logit_lens._ROWS_AT_ONCE", 2)
    blocks = logit_lens(checkpoint, trace)
    np.testing.assert_allclose(blocks.log_prob, lens.log_prob, atol=1e-4)
    np.testing.assert_array_equal(blocks.rank, lens.rank)


@pytest.mark.parametrize(
    ("ranks", "first", "stays"),
    [
        ([3, 2, 1, 1], 2, 2), ([1, 1, 1, 1], 0, 0), ([9, 1, 2, 1], 1, 3), ([1, 5, 5, 2], 0, -1),
        ([4, 3, 2, 2], -1, -1), ([1], 0, 0), ([7], -1, -1),
    ],
)  # fmt: skip
def test_a_path_knows_where_it_was_first_on_top_and_from_where_it_stays(ranks, first, stays):
    found = paths(np.array([[rank, 1] for rank in ranks]))
    assert (found.first[0], found.stays[0]) == (first, stays)
    assert (found.first[1], found.stays[1]) == (0, 0)
