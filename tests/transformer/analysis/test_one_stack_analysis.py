"""Models of one stack, and of other norms, gates and outputs, are measured by sums that add up, or say why not."""

import numpy as np
import pytest

from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER, random_ids, tiny_model
from transformer import run
from transformer.analysis import head_statistics as hs
from transformer.analysis import mask_checks, neurons, stream
from transformer.analysis.alignment import score_alignment
from transformer.analysis.logit_lens import logit_lens
from transformer.analysis.rollout import self_rollout
from transformer.errors import QueryError
from transformer.model.taps import Recorder, tap_of
from transformer.runs.running import replay

GATED = {"gated": True, "activation": "silu"}
MODELS = [
    {"norm_kind": "rms", **GATED, "bias": False},
    {"norm": "both", "norm_kind": "rms", **GATED, "output_scale": 0.3},
    {"norm": "both", "activation": "gelu_tanh", "norm_bias": False},
    {"norm": "post", "norm_kind": "biased_deviation", "embedding_norm": True},
    {"parallel_residual": True, "norm_kind": "deviation", "activation": "quick_gelu"},
    {"norm_kind": "none", "norm": "post", "residual": False, "activation": "none"},
]
LONE = [("encoder", {}), ("decoder", {}), *(("decoder", changes) for changes in MODELS)]


@pytest.fixture(scope="module", params=LONE, ids=str)
def lone(request, tmp_path_factory):
    """A checkpoint of one stack, a run on it, and the stack's name."""
    stack, changes = request.param
    checkpoint = alone(stack, tmp_path_factory.mktemp("alone"), **changes)
    return checkpoint, run(checkpoint, checkpoint.query("the red fox", max_new=5)), stack


def test_the_stream_is_a_sum_and_norms_are_their_formulas(lone):
    checkpoint, trace, stack = lone
    config, n = checkpoint.config, trace.n_tokens(stack)
    recorded = replay(checkpoint, trace, stream.sites(config, stack))
    found = stream.measure(recorded, config, stack, n_tokens=n)
    assert [place.part for place in found.places][:3] == ["embedding", "self_attn", "ffn"]
    for before, place in zip(stream.places(config, stack), stream.sublayers(config, stack), strict=False):
        if config.norm != "post":
            prefix = place.site.rpartition(".")[0]
            added = recorded[f"{prefix}.{'output_norm' if config.norm == 'both' else 'output'}"]
            assert np.allclose(recorded[before.site] + added, recorded[place.site], atol=1e-5)
    assert found.added.shape == (len(found.sublayers), n)
    for place in stream.norm_places(config, stack):
        assert stream.normed(recorded, checkpoint.model, stack, place, n_tokens=n).difference < 1e-5, place
    with pytest.raises(QueryError, match=r"no (decoder|encoder)"):
        stream.places(config, "decoder" if stack == "encoder" else "encoder")


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


def test_the_lens_ends_with_the_prediction_and_an_encoder_alone_says_why_it_has_none(lone):
    checkpoint, trace, stack = lone
    n_layers = checkpoint.model.anatomy.stack(stack).n_layers
    if checkpoint.config.activation != "none":
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


@pytest.mark.parametrize("changes", [*({**DECODER, **changes} for changes in MODELS), {"norm": "post"}, {}])
def test_in_the_last_layer_all_direct_effects_together_are_the_logits(changes):
    model, ids, recorder = tiny_model(**changes), random_ids(1, 5), Recorder(("decoder.*",))
    logits = model(ids, ids, tap=tap_of(recorder))[0].numpy()
    found = {site: value[0].numpy() for site, value in recorder.values.items()}
    config, token, layer = model.config, 3, 2
    names, last = neurons.effect_sites(config, layer), model.decoder.layers[layer]
    active = found[f"decoder.{layer}.ffn.activation"][token]
    effects = np.stack([neurons.direct_effect(model, layer, n, found, token=token) for n in range(config.d_ff)], 1)
    # What is left without the neurons: the same norms, at the sizes that they had.
    bias = last.ffn.down_proj.bias
    rest = np.zeros(config.d_model) if bias is None else bias.numpy()
    written = found[f"decoder.{layer}.ffn.{'output_norm' if config.norm == 'both' else 'output'}"][token]
    if config.norm == "both":
        rest = shifted(last.ffn_residual.output_norm, rest, found[names[0]][token])
    rest = found[f"decoder.{layer}.ffn.residual"][token] - written + rest
    if config.norm == "post":
        rest = shifted(last.ffn_residual.norm, rest, found[names[0]][token])
    if config.final_norm:
        rest = shifted(model.decoder.final_norm, rest, found[f"decoder.{layer}.output"][token])
    left = model.output_weight.numpy() @ (rest * config.output_scale)
    whole = effects @ active + left - left.mean()
    assert np.allclose(whole, logits[token] - logits[token].mean(), atol=1e-9)


def shifted(norm, part, whole):
    made = neurons.through_norm(norm, part, whole)
    return made if norm.bias is None else made + norm.bias.numpy()
