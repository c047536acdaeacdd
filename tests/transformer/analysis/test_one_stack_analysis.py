"""A decoder alone and an encoder alone are measured right, or one sentence says why not."""

import numpy as np
import pytest

from tests.transformer.one_stack import alone
from transformer import run
from transformer.analysis import head_statistics as hs
from transformer.analysis import mask_checks, neurons, stream
from transformer.analysis.alignment import score_alignment
from transformer.analysis.logit_lens import logit_lens
from transformer.analysis.rollout import self_rollout
from transformer.errors import QueryError
from transformer.runs.running import replay


@pytest.fixture(scope="module", params=["decoder", "encoder"])
def lone(request, tmp_path_factory):
    """A checkpoint of one stack, a run on it, and the stack's name."""
    checkpoint = alone(request.param, tmp_path_factory.mktemp("alone"))
    return checkpoint, run(checkpoint, checkpoint.query("the red fox", max_new=5)), request.param


def test_the_stream_of_the_stack_that_is_there(lone):
    checkpoint, trace, stack = lone
    found = replay(checkpoint, trace, stream.sites(checkpoint.config, stack))
    measured = stream.measure(found, checkpoint.config, stack, n_tokens=trace.n_tokens(stack))
    assert [place.part for place in measured.places][:3] == ["embedding", "self_attn", "ffn"]
    for place in stream.norm_places(checkpoint.config, stack):
        normed = stream.normed(found, checkpoint.model, stack, place, n_tokens=3)
        assert normed.difference < 1e-5
    with pytest.raises(QueryError, match=r"no (decoder|encoder)"):
        stream.places(checkpoint.config, "decoder" if stack == "encoder" else "encoder")


def test_measures_of_heads_count_their_own_tokens(lone):
    checkpoint, trace, kind = lone
    found = hs.measure(trace, kind, eos_id=checkpoint.config.eos_id)
    n = trace.n_tokens(kind)
    assert found["self"].means() == pytest.approx(trace.maps(kind)[:, :, range(n), range(n)].mean(-1), abs=1e-6)
    recorded = replay(checkpoint, trace, [hs.outputs_site(kind, layer) for layer in range(len(trace.maps(kind)))])
    shares = hs.norm_share(np.stack(list(recorded.values())), hs.output_projections(checkpoint.model, kind))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert self_rollout(trace.maps(kind)).shape == (n, n)
    with pytest.raises(QueryError, match="no cross-attention"):
        hs.output_projections(checkpoint.model, "cross")
    with pytest.raises(QueryError, match="no cross-attention"):
        score_alignment(checkpoint, None, source_text="spaced", target_text="spaced")


def test_a_decoder_alone_has_a_lens_and_silent_neurons_and_an_encoder_alone_says_why_it_has_no_lens(lone):
    checkpoint, trace, stack = lone
    n_layers = checkpoint.model.anatomy.stack(stack).n_layers
    assert neurons.silent_shares(checkpoint, trace, stack).shape == (n_layers, trace.n_tokens(stack))
    if stack == "decoder":
        chosen = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
        np.testing.assert_allclose(logit_lens(checkpoint, trace).log_prob[-1], chosen, atol=1e-4)
        return
    for asked in (
        lambda: logit_lens(checkpoint, trace),
        lambda: neurons.effect_sites(checkpoint.config, 0),
        lambda: mask_checks.check_causality(checkpoint.model, ((5, 6),), ((2, 5),), sentence=0, place=1, piece_id=7),
    ):
        with pytest.raises(QueryError, match="encoder-only and writes nothing"):
            asked()
