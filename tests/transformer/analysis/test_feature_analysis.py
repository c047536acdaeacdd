"""Models with other norms, gates and outputs than the paper's are measured by sums that add up."""

import numpy as np
import pytest

from tests.transformer.one_stack import alone
from tests.transformer.tiny import DECODER, random_ids, tiny_model
from transformer import run
from transformer.analysis import neurons, stream
from transformer.analysis.logit_lens import logit_lens
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


@pytest.fixture(scope="module", params=range(len(MODELS)))
def lone(request, tmp_path_factory):
    checkpoint = alone("decoder", tmp_path_factory.mktemp("alone"), **MODELS[request.param])
    return checkpoint, run(checkpoint, checkpoint.query("the red fox", max_new=5))


def test_the_stream_is_a_sum_and_norms_are_their_formulas(lone):
    checkpoint, trace = lone
    config, n = checkpoint.config, trace.n_tokens("decoder")
    recorded = replay(checkpoint, trace, stream.sites(config, "decoder"))
    found = stream.measure(recorded, config, "decoder", n_tokens=n)
    where = stream.places(config, "decoder")
    for before, place in zip(where, stream.sublayers(config, "decoder"), strict=False):
        if config.norm != "post":
            prefix = place.site.rpartition(".")[0]
            added = recorded[f"{prefix}.{'output_norm' if config.norm == 'both' else 'output'}"]
            assert np.allclose(recorded[before.site] + added, recorded[place.site], atol=1e-5)
    assert found.added.shape == (len(found.sublayers), n)
    for place in stream.norm_places(config, "decoder"):
        seen = stream.normed(recorded, checkpoint.model, "decoder", place, n_tokens=n)
        assert seen.difference < 1e-5, place


def test_the_lens_ends_with_the_prediction(lone):
    checkpoint, trace = lone
    lens = logit_lens(checkpoint, trace)
    own = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
    assert np.allclose(lens.log_prob[-1], own, atol=1e-4)


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
