"""At every depth the lens gives the stream through norm and projection, and at the last the run."""

import numpy as np
import pytest

from transformer.analysis.logit_lens import logit_lens, paths
from transformer.runs.running import replay, run


@pytest.fixture(scope="module", params=["pair", "shared"])
def checkpoint(request):
    """Pre-norm with a final norm, post-norm without."""
    return request.getfixturevalue(request.param)


def predictions(checkpoint, trace):
    """Probabilities [place, step, piece] in float64 from the parameters and the streams, without the model's code."""
    state, config = checkpoint.model.state_dict(), checkpoint.config
    norm = {"pre": "residual", "post": "norm"}[config.norm]
    parts = [f"{i}.{part}" for i in range(config.n_decoder_layers) for part in ("self_attn", "cross_attn", "ffn")]
    sites = ["decoder.embedding.output", *(f"decoder.{part}.{norm}" for part in parts)]
    found = replay(checkpoint, trace, sites)
    table = state["src_table" if config.shared_vocab else "tgt_table"].double().numpy()
    x = np.stack([found[site][: trace.n_steps] for site in sites]).astype(np.float64)
    if config.final_norm:
        weight, bias = (state[f"decoder.final_norm.{name}"].double().numpy() for name in ("weight", "bias"))
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + config.norm_eps) * weight + bias
    exps = np.exp(x @ table.T)
    return exps / exps.sum(-1, keepdims=True)


def test_every_depth_is_the_stream_through_norm_and_projection_also_in_blocks(checkpoint, monkeypatch):
    trace = run(checkpoint, checkpoint.query(checkpoint.card.examples[0], max_new=8))
    lens, expected = logit_lens(checkpoint, trace), predictions(checkpoint, trace)
    close = {"rtol": 2e-4, "atol": 1e-9}
    own = expected[:, np.arange(trace.n_steps), list(trace.tgt_ids)]
    np.testing.assert_allclose(lens.prob, own, **close)
    best = -np.sort(-expected, axis=2)[:, :, :5]
    np.testing.assert_allclose(lens.top_probs, best, **close)
    np.testing.assert_allclose(np.take_along_axis(expected, lens.top_ids, axis=2), best, **close)
    ranks, most = ((expected > own[:, :, None] * (1 + room)).sum(2) for room in (1e-4, -1e-4))
    assert ((ranks < lens.rank) & (lens.rank <= most)).all()
    assert lens.by_layer().rank.tolist() == lens.rank[::3].tolist()
    entropy = -(expected * np.log2(expected)).sum(2)
    np.testing.assert_allclose(lens.entropy, entropy, rtol=0, atol=1e-3)
    divergence = (expected[-1] * np.log2(expected[-1] / expected)).sum(2)
    np.testing.assert_allclose(lens.divergence, divergence, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(lens.divergence[-1], 0, atol=1e-9)
    monkeypatch.setattr("transformer.analysis.logit_lens._ROWS_AT_ONCE", 2)
    blocks = logit_lens(checkpoint, trace)
    np.testing.assert_allclose(blocks.log_prob, lens.log_prob, atol=1e-4)
    np.testing.assert_array_equal(blocks.rank, lens.rank)


def test_a_path_knows_where_it_was_first_on_top_and_from_where_it_stays():
    for ranks, first, stays in (
        ([3, 2, 1, 1], 2, 2), ([1, 1, 1, 1], 0, 0), ([9, 1, 2, 1], 1, 3), ([1, 5, 5, 2], 0, -1),
        ([4, 3, 2, 2], -1, -1), ([1], 0, 0), ([7], -1, -1),
    ):  # fmt: skip
        found = paths(np.array([[rank, 1] for rank in ranks]))
        assert (found.first.tolist(), found.stays.tolist()) == ([first, 0], [stays, 0])
