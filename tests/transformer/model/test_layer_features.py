"""Layers with any combination of features, dropout among them, do what their definitions say."""

import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transformer.model.by_definition import Plain
from tests.transformer.tiny import DECODER, ENCODER, laid_out, random_ids, tiny_config, tiny_model
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.feed_forward import ACTIVATIONS, FeedForward
from transformer.model.layers import Residual
from transformer.model.module import Dropout, random_bytes
from transformer.tap import Recorder, Replacer, sites, tap_of

STACKS = {"both": {}, "decoder": DECODER, "encoder": ENCODER}
YES_NO, ACTIVATION = st.booleans(), st.sampled_from(list(ACTIVATIONS))


@st.composite
def features(draw):
    """What a model may have of the layers' features; every combination is one that a config accepts."""
    stacks = draw(st.sampled_from(list(STACKS)))
    kind = draw(st.sampled_from(["layer", "rms", "deviation", "biased_deviation"]))
    parallel = stacks != "both" and draw(YES_NO)
    changes = {
        **STACKS[stacks],
        "norm_kind": kind,
        "norm": "pre" if parallel else draw(st.sampled_from(["pre", "post", "both"])),
        "parallel_residual": parallel,
        "residual": parallel or draw(YES_NO),
        "norm_eps": draw(st.sampled_from([1e-12, 1e-5, 0.05])),
        "activation": draw(ACTIVATION),
        "bias": draw(YES_NO),
        "logit_cap": draw(st.sampled_from([None, 3.0])),
        "output_scale": draw(st.sampled_from([1.0, 12**-0.5])),
        "mlm_head": stacks == "encoder" and draw(YES_NO),
        "mlm_activation": draw(ACTIVATION),
        "n_token_types": draw(st.integers(0, 2)) if stacks != "decoder" else 0,
        "n_kv_heads": draw(st.sampled_from([1, 3])),
        "d_head": draw(st.sampled_from([0, 5])),
    }
    for name in ("final_norm", "gated", "embedding_norm", "scale_embedding", "tie_output", "output_bias"):
        changes[name] = draw(YES_NO)
    for name in ("attention_bias", "attention_output_bias", "ffn_bias", "norm_bias"):
        changes[name] = draw(st.sampled_from([None, *([True] if (kind, name) != ("rms", "norm_bias") else []), False]))
    return changes


def close(a, b, limit=1e-10):
    return torch.allclose(a, b, rtol=0, atol=limit)


@settings(max_examples=40)
@given(features(), st.integers(1, 4))
def test_a_model_is_what_its_definitions_say_however_it_is_called_and_lies_in_memory(changes, cut):
    model = tiny_model(**changes)
    src, tgt, recorder = random_ids(2, 6), random_ids(2, 5, seed=1), Recorder(("*",))
    found, expected = model(src, tgt), Plain(model).logits(src, tgt)
    assert found.shape == expected.shape
    assert close(found, expected)
    assert close(model(src, tgt, tap=tap_of(recorder)), expected)
    assert recorder.values.keys() == sites(model.config).keys()
    if model.anatomy.writes:
        memory, cache = model.encode(src) if model.anatomy.reads else None, KVCache(3)
        hidden = [model.decode(part, memory, cache=cache) for part in tgt.split([cut, 5 - cut], dim=1)]
        assert close(model.project(torch.cat(hidden, dim=1)), expected)
    assert close(laid_out(model)(src, tgt).double(), expected, 1e-4 * max(1.0, float(expected.abs().max())))
    assert model.config.count_parameters() == sum(p.numel() for p in model.parameters() if p.numel())
    assert ModelConfig.from_mapping(json.loads(model.config.to_json())) == model.config


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post", "both"])
def test_a_model_without_norms_is_what_its_definitions_say(norm, residual):
    """By itself: nothing keeps its numbers small."""
    model = tiny_model(norm_kind="none", norm=norm, residual=residual, activation="none")
    src, tgt = random_ids(2, 6), random_ids(2, 5, seed=1)
    found, expected = model(src, tgt), Plain(model).logits(src, tgt)
    assert close(found / found.abs().max(), expected / found.abs().max())
    assert model.config.count_parameters() == sum(p.numel() for p in model.parameters())
    assert not any("norm" in name for name, _ in model.named_parameters())


EVERYTHING = {"norm": "both", "gated": True, "embedding_norm": True, "logit_cap": 9.0}


@pytest.mark.parametrize("changes", [{}, EVERYTHING, {**ENCODER, **EVERYTHING, "mlm_head": True, "n_token_types": 2},
                                     {**DECODER, "parallel_residual": True, "gated": True}])  # fmt: skip
def test_every_site_has_its_axes_and_is_live(changes):
    """What is replaced is what the model goes on with."""
    model, src, tgt, recorder = tiny_model(**changes), random_ids(3, 6), random_ids(3, 5), Recorder(("*",))
    plain = model(src, tgt, tap=tap_of(recorder))
    fixed = {"batch": 3, "head": 3, "kv_head": 3, "d_model": 12, "d_head": 4, "d_ff": 20}

    def change(value):
        if value.dtype == torch.bool:
            return value & (torch.arange(value.size(-1)) == 0)
        return value + torch.randn(value.shape, dtype=value.dtype, generator=torch.Generator().manual_seed(0))

    for site, text in sites(model.config).items():
        here = 6 if site.startswith("encoder") or model.anatomy.fills else 5
        sizes = fixed | {"query": here, "token": here, "key": 6 if "cross" in site else here,
                         "tgt_vocab": model.config.tgt_vocab_size}  # fmt: skip
        expected = [sizes[axis] for axis in re.search(r"\[(.*?)\]", text)[1].split(", ")]
        shape = recorder.values[site].shape
        assert list(torch.broadcast_shapes(shape, expected) if "broadcasts" in text else shape) == expected, site
        changed = model(src, tgt, tap=tap_of(Replacer({site: change})))
        assert not torch.allclose(changed, plain, atol=1e-6), site


def test_token_types_are_chosen_and_are_0_by_default():
    model, src, types = tiny_model(**ENCODER, n_token_types=3), random_ids(2, 6), torch.tensor([[0, 0, 1, 1, 2, 2]] * 2)
    assert close(model.encode(src, types), Plain(model).logits(src, None, types))
    assert close(model.encode(src), model.encode(src, torch.zeros_like(types)))
    assert not torch.allclose(model.encode(src, types), model.encode(src))


@pytest.mark.parametrize("p", [0.1, 0.9])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_training_drops_the_right_share_the_same_whatever_the_type_and_keeps_mean_and_gradients(p, dtype):
    torch.manual_seed(5)
    expected = Dropout(p).train()(torch.ones(300, 400)) == 0
    assert float(expected.float().mean()) == pytest.approx(p, abs=0.006)
    x = torch.ones(400, 300, dtype=dtype, requires_grad=True)
    torch.manual_seed(5)
    dropped = Dropout(p).train()(x.T)
    assert dropped.dtype == dtype
    assert torch.equal(dropped == 0, expected)
    (kept,) = dropped[~expected].unique().tolist()
    assert kept == pytest.approx(256 / (256 - round(256 * p)), rel=0.01)
    dropped.sum().backward()
    assert torch.equal(x.grad.T, dropped)
    assert Dropout(p).eval()(x) is Dropout(0.0).train()(x) is x
    assert [random_bytes(n, x.device).shape for n in (0, 7)] == [(0,), (7,)]
    many = np.bincount(random_bytes(256_000, x.device).numpy(), minlength=256)  # 8 bits each, and all as often
    assert ((many - 1000.0) ** 2 / 1000).sum() < 400  # chi squared of 255 degrees of freedom: 400 is far out


def test_dropout_acts_on_a_sub_layers_output_on_weights_of_attention_and_on_the_values_inside_a_feed_forward_layer():
    residual, x = Residual(tiny_config(dropout=0.5)).train(), torch.randn(4, 50, 12)
    added = residual(x, torch.ones_like) - x
    assert set(added.round(decimals=4).unique().tolist()) == {0.0, 2.0}

    model, src, tgt = tiny_model(attention_dropout=0.5), random_ids(3, 9), random_ids(3, 7)
    names = [name for name in sites(model.config) if name.endswith("self_attn.weights")]
    seen, whole = (Recorder(names) for _ in range(2))
    model(src, tgt, tap=tap_of(whole))
    model.train()(src, tgt, tap=tap_of(seen))
    first = "encoder.0.self_attn.weights"  # below it nothing was dropped
    kept = seen.values[first] != 0
    assert 0.3 < float(kept[whole.values[first] > 0].float().mean()) < 0.7
    assert close(seen.values[first], torch.where(kept, 2 * whole.values[first], 0))
    for name in names:
        assert (seen.values[name] == 0).sum() > (whole.values[name] == 0).sum(), name

    network, x = FeedForward(tiny_config(ffn_dropout=0.5)).double(), x.double()
    torch.manual_seed(3)
    found = network.train()(x)
    torch.manual_seed(3)
    inside = Dropout(0.5).train()(torch.relu(network.up_proj(x)))
    assert close(found, inside @ network.down_proj.weight.T + network.down_proj.bias)
    assert not close(found, network.eval()(x))
