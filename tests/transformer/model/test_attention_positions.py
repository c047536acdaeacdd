"""Models with features of attention step, train and record as one pass does; distances are T5's and Bloom's."""

import json

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from tests.transformer.tiny import DECODER, ENCODER, ONE_STACK, padded_source, target_ids, tiny_config, tiny_model
from transformer.model import attention_positions
from transformer.model.attention_features import Rotary
from transformer.model.cache import KVCache
from transformer.model.masks import causal_mask, window_mask, within
from transformer.tap import Recorder, Replacer, sites, tap_of

FEATURES = {
    "halves": {"sinusoid_layout": "halves"},
    "fairseq": {"sinusoid_layout": "fairseq"},
    "rotary": {"positions": "rotary"},
    "rotary by half": {"positions": "rotary", "rotary": Rotary(share=0.5, scaling="linear", factor=3.0)},
    "rotary, unplaced": {"positions": "rotary", "unplaced_layers": (1,)},
    "relative": {"positions": "relative", "relative_buckets": 6, "relative_distance": 8},
    "alibi": {"positions": "alibi"},
    "none": {"positions": "none"},
    "unscaled": {"score_scale": 1.0},
    "capped": {"score_cap": 1.5},
    "normed": {"qk_norm": True},
    "windows": {"windows": (3, 0, 1)},
    "filled": {"mask_fill": -1e9},
    "of Gemma 3": {"positions": "rotary", "rotary": Rotary(base=1e6, local_base=10_000.0), "windows": (2, 2, 0),
                   "qk_norm": True, "n_kv_heads": 1, "score_scale": 0.2},
}  # fmt: skip


def close(a, b, limit=1e-10):
    return torch.allclose(a, b, rtol=0, atol=limit)


def decoded(model, src, tgt, chunks):
    """Logits with a cache, so many tokens at a time."""
    cache, memory, mask = KVCache(model.config.n_decoder_layers), None, None
    if model.anatomy.reads:
        memory, mask = model.encode(src), model.source_mask(src)
    hidden = [model.decode(ids, memory, mask, cache=cache) for ids in tgt.split(chunks, dim=1)]
    return model.project(torch.cat(hidden, dim=1))


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("stack", [{}, DECODER])
def test_a_feature_shows_everywhere(name, stack):
    """In steps with a cache, in sites that are live, in parameters and gradients, in JSON and in the output."""
    model, recorder = tiny_model(**stack, **FEATURES[name]), Recorder(("*",))
    src, tgt = padded_source(), target_ids(9)
    expected = model(src, tgt, tap=tap_of(recorder))
    for chunks in (1, [4, 1, 1, 3]):
        assert close(decoded(model, src, tgt, chunks), expected)
    assert recorder.values.keys() == sites(model.config).keys()
    for site in recorder.values:
        if site.endswith(("bias", "projected_keys", "projected_queries")):
            moved = Replacer({site: lambda x: x + torch.randn(x.shape, generator=torch.Generator().manual_seed(0))})
            assert not torch.allclose(model(src, tgt, tap=tap_of(moved)), expected, atol=1e-6), site
    assert model.config.count_parameters() == sum(p.numel() for p in model.parameters() if p.numel())
    assert type(model.config).from_mapping(json.loads(model.config.to_json())) == model.config
    plain = tiny_model(**stack)
    if name not in ("filled", "of Gemma 3"):
        model.load_state_dict(plain.state_dict(), strict=False)
        assert not torch.allclose(plain(src, tgt), model(src, tgt), atol=1e-4)
    logits = model.requires_grad_(True)(src, tgt)
    F.cross_entropy(logits.flatten(0, 1), tgt.flatten()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters() if p.numel())


COMBINATIONS = {
    "positions": st.sampled_from(["sinusoidal", "rotary", "relative", "alibi", "none"]),
    "windows": st.tuples(*[st.integers(0, 6)] * 3),
    "score_scale": st.sampled_from([None, 1.0, 0.3]),
    "score_cap": st.sampled_from([None, 0.7, 30.0]),
    "qk_norm": st.booleans(),
    "mask_fill": st.sampled_from([None, -1e9, -1e4]),
    "n_kv_heads": st.sampled_from([1, 3]),
}


@settings(max_examples=20, deadline=None)
@given(st.fixed_dictionaries(COMBINATIONS), st.booleans())
def test_any_combination_is_causal_and_its_steps_are_one_pass(features, alone):
    model = tiny_model(**(DECODER if alone else {}), **features, relative_buckets=4, relative_distance=6)
    src, tgt, recorder = padded_source(), target_ids(8), Recorder()
    logits = model(src, tgt, tap=tap_of(recorder))
    assert close(logits, model(src, tgt))  # the fused way is the other
    for site, weights in recorder.values.items():
        if site.endswith("weights"):
            assert close(weights.sum(-1), torch.ones((), dtype=torch.float64))
            if "decoder" in site and "self_attn" in site:
                closed = ~recorder.values[site.replace("weights", "mask")].expand_as(weights)
                assert (weights[closed] == 0).all()
                assert (weights.triu(1) == 0).all()
    assert close(decoded(model, src, tgt, 1), logits)


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize(("n_buckets", "most"), [(32, 128), (8, 20)])
def test_relative_attention_is_transformers(stack, n_buckets, most):
    features = {"positions": "relative", "relative_buckets": n_buckets, "relative_distance": most, "d_head": 5}
    lone = {"encoder": ENCODER, "decoder": DECODER}[stack] | {"score_scale": 1.0, "bias": False, "max_len": 64}
    model = tiny_model(**lone, **features, dtype=torch.float32)
    ours, order = model.stack(stack).layers[0].self_attn, model.stack(stack).order
    buckets = {"relative_attention_num_buckets": n_buckets, "relative_attention_max_distance": most}
    config = T5Config(d_model=12, d_kv=5, num_heads=3, is_decoder=stack == "decoder", **buckets)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    names = {"q": ours.q_proj, "k": ours.k_proj, "v": ours.v_proj, "o": ours.out_proj}
    state = {f"{name}.weight": module.weight for name, module in names.items()}
    theirs.load_state_dict(state | {"relative_attention_bias.weight": order.table})
    x = torch.randn(2, 60, 12, generator=torch.Generator().manual_seed(0))
    mask = causal_mask(60) if stack == "decoder" else torch.ones(1, 1, 60, 60, dtype=torch.bool)
    added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
    assert close(ours(x, x, mask, order=order(60, offset=0, like=x)[0]), theirs(x, mask=added)[0], 1e-5)


def test_queries_and_keys_are_normed_before_they_turn():
    model, recorder = tiny_model(**DECODER, positions="rotary", qk_norm=True, norm_eps=0.01), Recorder(("*",))
    model(padded_source(), target_ids(9), tap=tap_of(recorder))
    attention, name = model.attentions("decoder")[0], "decoder.0.self_attn."
    for part, norm in (("queries", attention.q_norm), ("keys", attention.k_norm)):
        before, after = (recorder.values[f"{name}{said}{part}"] for said in ("projected_", ""))
        normed = before / (before.square().mean(-1, keepdim=True) + 0.01).sqrt() * norm.weight
        assert close(after[:, :, 0], normed[:, :, 0])  # position 0 does not turn
        assert close(after.square().sum(-1), normed.square().sum(-1))  # and turning keeps lengths
        assert not torch.allclose(after[:, :, 1:], normed[:, :, 1:])


def test_a_query_sees_the_last_keys_up_to_itself_and_each_layer_has_its_own_window():
    for window in (1, 3, 8):
        mask = window_mask(window, 8)[0, 0] & causal_mask(8)[0, 0]
        assert mask.tolist() == [[query - window < key <= query for key in range(8)] for query in range(8)]
        assert torch.equal(window_mask(window, 3, offset=5), window_mask(window, 8)[:, :, 5:])
    assert within(None, 4, 1, offset=3) is None
    assert within(None, 2, 1, offset=3).tolist() == [[[[False, False, True, True]]]]
    model, recorder = tiny_model(windows=(3, 0, 1)), Recorder()
    model(padded_source(), target_ids(9), tap=tap_of(recorder))
    for layer, window in enumerate((3, 9, 1)):
        mask = recorder.values[f"decoder.{layer}.self_attn.mask"].expand(3, 1, 9, 9)
        assert mask[0, 0].sum(-1).tolist() == [min(window, query + 1) for query in range(9)]
        assert recorder.values[f"decoder.{layer}.cross_attn.mask"].shape == (3, 1, 1, 6)


@pytest.mark.parametrize("n_heads", [1, 3, 8, 12])
def test_alibi_is_blooms_but_for_a_number_a_row_and_falls_to_both_sides(n_heads):
    """Bloom adds slope times the key's position: another number for the whole row, which no softmax sees."""
    expected = build_alibi_tensor(torch.ones(1, 60), n_heads, torch.float32).view(n_heads, 1, 60)
    apart = attention_positions.distances(torch.arange(60), offset=0)
    found = attention_positions.alibi(n_heads, apart, like=torch.ones(1))
    assert (found.shape, torch.equal(found, found.mT)) == ((1, n_heads, 60, 60), True)
    future = torch.ones(60, 60, dtype=torch.bool).triu(1)
    ours, blooms = (
        bias.expand(n_heads, 60, 60).masked_fill(future, -torch.inf).softmax(-1) for bias in (found[0], expected)
    )
    assert close(ours, blooms, 1e-5)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "most", "max_len"), [(32, 128, 512), (8, 20, 9), (4, 5, 4)])
def test_what_is_said_of_buckets_is_counted(causal, n_buckets, most, max_len):
    buckets = {"relative_buckets": n_buckets, "relative_distance": most}
    config = tiny_config(**ONE_STACK, positions="relative", **buckets, max_len=max_len)
    apart = torch.arange(-max_len + 1, 1 if causal else max_len)
    each = attention_positions.buckets(apart, n_buckets=n_buckets, max_distance=most, causal=causal).tolist()
    expected = (len(set(each)), max_len - each.count(each[0]), max_len - 1)
    assert attention_positions.reached(config, causal) == expected
