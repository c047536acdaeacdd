"""Direct contributions add up to the logit, each is right, and what a run changed is a part of its own."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.effects.attribution.parts import contributions
from tests.extensions.effects.attribution.asking import asked
from tests.transformer.model.test_layer_features import features
from tests.transformer.tiny import DECODER
from transformer.model.layers import Around
from transformer.model.norms import Norm
from transformer.model.taps import Recorder, Replacer, Rewirer, tap_of

POST = {"norm": "post", "final_norm": False}


def remainder(found):
    """The logits minus the sums of their parts."""
    return found.logits - found.values.sum(axis=1)


SHAPES = [{}, POST, {"norm": "both", "gated": True, "embedding_norm": True}, {**DECODER, **POST, "n_kv_heads": 1}]


@settings(max_examples=40)
@given(features().filter(lambda changes: changes.get("n_decoder_layers", 1)), st.integers(4, 16))
def test_all_parts_add_up_to_the_logit(changes, other):
    found = contributions(asked(**changes), (other,))
    scale = max(1.0, float(np.abs(found.values).max()))
    np.testing.assert_allclose(remainder(found), found.capped, atol=1e-10 * scale, rtol=0)
    assert not any(part.kind in ("changed", "attention") for part in found.parts)
    assert len(set(found.parts)) == len(found.parts)
    capped = changes["logit_cap"] is not None
    assert (found.capped != 0).any() == capped


def forwards(question, place, vector):
    """What a norm after another makes of a vector that is added at the output of a sub-layer, at the last token."""
    recorder = Recorder(("*",))
    question.logits(tap=tap_of(recorder))
    model, layers = question.model, list(question.model.decoder.layers)
    layer, part = place
    parts = model.anatomy.stack("decoder").sublayers
    passed = [(layer, one) for one in parts[parts.index(part) :]]
    passed += [(later, one) for later in range(layer + 1, len(layers)) for one in parts]
    norms = [(getattr(layers[n], f"{one}_residual").norm, f"decoder.{n}.{one}.residual") for n, one in passed]
    norms = norms if model.config.norm == "post" else []
    if model.config.norm == "both":
        own = getattr(layers[layer], f"{part}_residual").output_norm
        norms.append((own, f"decoder.{layer}.{part}.output"))
    if isinstance(model.decoder.final_norm, Norm):
        norms.append((model.decoder.final_norm, f"decoder.{len(layers) - 1}.output"))
    for norm, site in norms:
        read = recorder.values[site][0, -1]
        vector = norm.weight * (vector - vector.mean()) / (read.var(correction=0) + model.config.norm_eps).sqrt()
    return float(model.output_weight[question.piece] @ vector)


@pytest.mark.parametrize("changes", SHAPES)
def test_each_head_and_feed_forward_layer_is_what_its_vector_becomes_on_the_way(changes):
    question, recorder = asked(**changes), Recorder(("*.heads", "*.output"))
    question.logits(tap=tap_of(recorder))
    found = contributions(question)
    layers = question.model.decoder.layers
    for part, value in zip(found.parts, found.values[0], strict=True):
        if part.kind == "head":
            attention = getattr(layers[part.layer], part.sublayer)
            d = attention.d_head
            head = recorder.values[f"decoder.{part.layer}.{part.sublayer}.heads"][0, part.head, -1]
            vector = attention.out_proj.weight[:, part.head * d : (part.head + 1) * d] @ head
        elif part.kind == "ffn":
            output = recorder.values[f"decoder.{part.layer}.ffn.output"][0, -1]
            vector = output - layers[part.layer].ffn.down_proj.bias
        else:
            continue
        assert value == pytest.approx(forwards(question, (part.layer, part.sublayer), vector), abs=1e-10)


def changed(name, change, *, seed=3):
    noise = torch.randn(12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Replacer({name: lambda value: change(value, noise)})


SOME = [POST, {"norm": "both", "embedding_norm": True}]
VALUES = {
    "decoder.1.cross_attn.output": "attention",
    "decoder.1.ffn.output": "ffn",
    "decoder.0.self_attn.residual": "changed",
    "decoder.embedding.output": "changed",
    "decoder.2.output": "changed",
    "decoder.output": "changed",
}


@pytest.mark.parametrize(("site", "shape"), [(site, SOME[n % 2]) for n, site in enumerate(VALUES)])
def test_what_a_run_puts_in_the_place_of_a_value_is_a_part(site, shape):
    tap = tap_of(changed(site, lambda value, noise: value + noise))
    found = contributions(asked(tap=tap, **shape))
    assert VALUES[site] in [part.kind for part in found.parts]
    assert abs(remainder(found)[0]) < 1e-10


WIRINGS = {
    "no residual": {"decoder.1.ffn.around": lambda how: Around(post=how.post, adds=False)},
    "no norm": {"decoder.*.around": lambda how: Around(post=how.post, adds=True, norms=False)},
    "swapped": {"decoder.*.around": lambda how: Around(post=not how.post, adds=True)},
    "skipped": {"decoder.1.*.around": lambda how: Around(post=how.post, adds=True, skips=True)},
    "no final norm": {"decoder.final_norm": lambda norm: torch.nn.Identity()},
    "rounded": {"decoder.*.weight": lambda weight: (weight * 8).round() / 8, "output_weight": lambda w: w.round()},
}


@pytest.mark.parametrize("shape", SOME)
@pytest.mark.parametrize("wiring", WIRINGS)
def test_parts_go_by_the_wiring_of_the_run(wiring, shape):
    question = asked(tap=tap_of(Rewirer(WIRINGS[wiring])), **shape)
    found = contributions(question)
    assert abs(remainder(found)[0]) < 1e-10 * max(1.0, float(np.abs(found.values).max()))
    assert found.logits[0] == float(question.logits()[0, 7])
    # A stack that is normed before and has no norm after it, or none any more, has nothing that is not its own.
    assert not any(part.kind in ("attention", "changed") for part in found.parts) or wiring == "no final norm"
