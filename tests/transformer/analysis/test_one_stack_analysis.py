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


@pytest.mark.parametrize("changes", [None, {}, *MODELS], ids=str)
def test_a_lone_stack_is_measured_by_sums_that_add_up(changes, tmp_path):
    stack = "encoder" if changes is None else "decoder"
    checkpoint = alone(stack, tmp_path, **(changes or {}))
    trace, config, model = (
        run(checkpoint, checkpoint.query("the red fox", max_new=5)),
        checkpoint.config,
        checkpoint.model,
    )
    n, maps = trace.n_tokens(stack), trace.maps(stack)
    recorded = replay(checkpoint, trace, [*stream.sites(config, stack), f"{stack}.*.heads"])
    found = stream.measure(recorded, config, stack, n_tokens=n)
    assert [place.part for place in found.places][:3] == ["embedding", "self_attn", "ffn"]
    for before, place in zip(stream.places(config, stack), stream.sublayers(config, stack), strict=False):
        if config.norm != "post":
            added = f"{place.site.rpartition('.')[0]}.{'output_norm' if config.norm == 'both' else 'output'}"
            assert np.allclose(recorded[before.site] + recorded[added], recorded[place.site], atol=1e-5)
    assert found.added.shape == (len(found.sublayers), n)
    for place in stream.norm_places(config, stack):
        assert stream.normed(recorded, model, stack, place, n_tokens=n).difference < 1e-5, place

    measures = hs.measure_by_layer(checkpoint, trace, stack)
    assert measures["self"].means() == pytest.approx(maps[:, :, range(n), range(n)].mean(-1), abs=1e-6)
    heads = np.stack([recorded[hs.outputs_site(stack, layer)] for layer in range(len(maps))])
    np.testing.assert_allclose(hs.norm_share(heads, hs.output_projections(model, stack)).sum(axis=1), 1)
    assert self_rollout(maps).shape == (n, n)
    if config.activation != "none":
        assert neurons.silent_shares(checkpoint, trace, stack).shape == (len(maps), n)
    writes = "encoder-only and writes nothing"
    refused = {
        lambda: stream.places(config, "decoder" if stack == "encoder" else "encoder"): r"no (decoder|encoder)",
        lambda: hs.output_projections(model, "cross"): "no cross-attention",
        lambda: score_alignment(checkpoint, None, source_text="spaced", target_text="spaced"): "no cross-attention",
    }
    if stack == "decoder":
        chosen = trace.log_probs[np.arange(trace.n_steps), list(trace.tgt_ids)]
        np.testing.assert_allclose(logit_lens(checkpoint, trace).log_prob[-1], chosen, atol=1e-4)
    else:
        refused |= {
            lambda: logit_lens(checkpoint, trace): writes,
            lambda: neurons.effect_sites(config, 0): writes,
            lambda: mask_checks.check_causality(model, ((5, 6),), ((2, 5),), sentence=0, place=1, piece_id=7): writes,
        }
    for asked, said in refused.items():
        with pytest.raises(QueryError, match=said):
            asked()


@pytest.mark.parametrize("changes", [*({**DECODER, **changes} for changes in MODELS), {"norm": "post"}, {}])
def test_in_the_last_layer_all_direct_effects_together_are_the_logits(changes):
    model, ids, recorder = tiny_model(**changes), random_ids(1, 5), Recorder(("decoder.*",))
    logits = model(ids, ids, tap=tap_of(recorder))[0].numpy()
    found = {site: value[0].numpy() for site, value in recorder.values.items()}
    config, token, name = model.config, 3, "decoder.2"
    before_norm, last = found[neurons.effect_sites(config, 2)[0]][token], model.decoder.layers[2]
    effects = np.stack([neurons.direct_effect(model, 2, n, found, token=token) for n in range(config.d_ff)], 1)

    def shifted(norm, part, whole):
        made = neurons.through_norm(norm, part, whole)
        return made if norm.bias is None else made + norm.bias.numpy()

    # What is left without the neurons: the same norms, at the sizes that they had.
    bias = last.ffn.down_proj.bias
    rest = np.zeros(config.d_model) if bias is None else bias.numpy()
    if config.norm == "both":
        rest = shifted(last.ffn_residual.output_norm, rest, before_norm)
    written = found[f"{name}.ffn.{'output_norm' if config.norm == 'both' else 'output'}"][token]
    rest = found[f"{name}.ffn.residual"][token] - written + rest
    if config.norm == "post":
        rest = shifted(last.ffn_residual.norm, rest, before_norm)
    if config.final_norm:
        rest = shifted(model.decoder.final_norm, rest, found[f"{name}.output"][token])
    left = model.output_weight.numpy() @ (rest * config.output_scale)
    whole = effects @ found[f"{name}.ffn.activation"][token] + left - left.mean()
    assert np.allclose(whole, logits[token] - logits[token].mean(), atol=1e-9)
