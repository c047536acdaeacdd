"""Models with features of attention step, train and record as one pass does; distances are T5's and Bloom's."""

import json

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

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
    "of Gemma 3": {
        "positions": "rotary",
        "rotary": Rotary(base=1e6, local_base=10_000.0),
        "windows": (2, 2, 0),
        "qk_norm": True,
        "n_kv_heads": 1,
        "score_scale": 0.2,
    },
}


def decoded(model, src, tgt, chunks):
    """Logits with a cache, so many tokens at a time."""
    cache = KVCache(model.config.n_decoder_layers)
    memory = model.encode(src) if model.anatomy.reads else None
    mask = model.source_mask(src) if model.anatomy.reads else None
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
        assert torch.allclose(decoded(model, src, tgt, chunks), expected, rtol=0, atol=1e-10)
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


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(["sinusoidal", "rotary", "relative", "alibi", "none"]),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
    st.sampled_from([None, 1.0, 0.3]),
    st.sampled_from([None, 0.7, 30.0]),
    st.booleans(),
    st.sampled_from([None, -1e9, -1e4]),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_any_combination_is_causal_and_its_steps_are_one_pass(
    positions, windows, scale, cap, qk_norm, fill, n_kv_heads, alone
):
    model = tiny_model(
        **(DECODER if alone else {}), positions=positions, windows=tuple(windows), score_scale=scale, score_cap=cap,
        qk_norm=qk_norm, mask_fill=fill, n_kv_heads=n_kv_heads, relative_buckets=4, relative_distance=6,
    )  # fmt: skip
    src, tgt, recorder = padded_source(), target_ids(8), Recorder()
    logits = model(src, tgt, tap=tap_of(recorder))
    assert torch.allclose(logits, model(src, tgt), rtol=0, atol=1e-10)  # the fused way is the other
    for site, weights in recorder.values.items():
        if site.endswith("weights"):
            assert torch.allclose(weights.sum(-1), torch.ones((), dtype=torch.float64), atol=1e-10)
            if "decoder" in site and "self_attn" in site:
                closed = ~recorder.values[site.replace("weights", "mask")].expand_as(weights)
                assert (weights[closed] == 0).all()
                assert (weights.triu(1) == 0).all()
    assert torch.allclose(decoded(model, src, tgt, 1), logits, rtol=0, atol=1e-10)


def test_relative_attention_is_transformers():
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    plain = {"positions": "relative", "score_scale": 1.0, "bias": False, "max_len": 64, "d_head": 5}
    for stack, one_stack, n_buckets, most in (
        *(("encoder", ENCODER, 32, 128), ("encoder", ENCODER, 8, 20)),
        *(("decoder", DECODER, 32, 128), ("decoder", DECODER, 8, 20)),
    ):
        buckets = {"relative_buckets": n_buckets, "relative_distance": most}
        model = tiny_model(**one_stack, dtype=torch.float32, **plain, **buckets)
        ours, order = model.stack(stack).layers[0].self_attn, model.stack(stack).order
        config = T5Config(
            d_model=12, d_kv=5, num_heads=3, is_decoder=stack == "decoder",
            relative_attention_num_buckets=n_buckets, relative_attention_max_distance=most,
        )  # fmt: skip
        theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
        names = {"q": ours.q_proj, "k": ours.k_proj, "v": ours.v_proj, "o": ours.out_proj}
        theirs.load_state_dict(
            {f"{name}.weight": module.weight for name, module in names.items()}
            | {"relative_attention_bias.weight": order.table}
        )
        x = torch.randn(2, 60, 12, generator=torch.Generator().manual_seed(0))
        mask = causal_mask(60) if stack == "decoder" else torch.ones(1, 1, 60, 60, dtype=torch.bool)
        added = torch.zeros(mask.shape).masked_fill(~mask, torch.finfo(torch.float32).min)
        expected = theirs(x, mask=added)[0]
        found = ours(x, x, mask, order=order(60, offset=0, like=x)[0])
        assert torch.allclose(found, expected, rtol=0, atol=1e-5), stack


def test_queries_and_keys_are_normed_before_they_turn():
    model, recorder = tiny_model(**DECODER, positions="rotary", qk_norm=True, norm_eps=0.01), Recorder(("*",))
    model(padded_source(), target_ids(9), tap=tap_of(recorder))
    attention = model.attentions("decoder")[0]
    for name, norm in (("queries", attention.q_norm), ("keys", attention.k_norm)):
        before = recorder.values[f"decoder.0.self_attn.projected_{name}"]
        after = recorder.values[f"decoder.0.self_attn.{name}"]
        normed = before / (before.square().mean(-1, keepdim=True) + 0.01).sqrt() * norm.weight
        assert torch.allclose(after[:, :, 0], normed[:, :, 0], rtol=0, atol=1e-10)  # position 0 does not turn
        assert torch.allclose(
            after.square().sum(-1), normed.square().sum(-1), rtol=0, atol=1e-10
        )  # and turning keeps lengths
        assert not torch.allclose(after[:, :, 1:], normed[:, :, 1:])


@pytest.mark.parametrize("window", [1, 3, 8])
def test_a_query_sees_the_last_keys_up_to_itself(window):
    mask = window_mask(window, 8)[0, 0] & causal_mask(8)[0, 0]
    for query in range(8):
        assert mask[query].nonzero().flatten().tolist() == list(range(max(0, query - window + 1), query + 1))
    assert torch.equal(window_mask(window, 3, offset=5), window_mask(window, 8)[:, :, 5:])
    assert within(None, 4, 1, offset=3) is None
    assert within(None, 2, 1, offset=3).tolist() == [[[[False, False, True, True]]]]


def test_each_layer_has_its_own_window():
    model, recorder = tiny_model(windows=(3, 0, 1)), Recorder()
    model(padded_source(), target_ids(9), tap=tap_of(recorder))
    for layer, window in enumerate((3, 9, 1)):
        mask = recorder.values[f"decoder.{layer}.self_attn.mask"].expand(3, 1, 9, 9)
        assert mask[0, 0].sum(-1).tolist() == [min(window, query + 1) for query in range(9)]
        assert recorder.values[f"decoder.{layer}.cross_attn.mask"].shape == (3, 1, 1, 6)


def apart(n, *, offset=0):
    return attention_positions.distances(torch.arange(offset + n), offset=offset)


@pytest.mark.parametrize("n_heads", [1, 3, 8, 12])
def test_alibi_is_blooms_but_for_a_number_a_row(n_heads):
    """Bloom adds slope times the key's position: another number for the whole row, which no softmax sees."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    expected = build_alibi_tensor(torch.ones(1, 60), n_heads, torch.float32).view(n_heads, 1, 60)
    found = attention_positions.alibi(n_heads, apart(60), like=torch.ones(1))[0]
    causal = torch.ones(60, 60, dtype=torch.bool).tril()

    def weights(bias):
        return bias.expand(n_heads, 60, 60).masked_fill(~causal, -torch.inf).softmax(-1)

    assert torch.allclose(weights(found), weights(expected), rtol=0, atol=1e-5)


def test_alibi_falls_with_the_distance_to_both_sides():
    found = attention_positions.alibi(4, apart(5), like=torch.ones(1, dtype=torch.float64))
    assert found.shape == (1, 4, 5, 5)
    assert torch.equal(found, found.mT)
    assert found[0, 0, 4].tolist() == [-1.0, -0.75, -0.5, -0.25, 0.0]  # 2^(-8 / 4) = 1/4


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "most", "max_len"), [(32, 128, 512), (8, 20, 9), (4, 5, 4)])
def test_what_is_said_of_buckets_is_counted(causal, n_buckets, most, max_len):
    config = tiny_config(
        **ONE_STACK, positions="relative", relative_buckets=n_buckets, relative_distance=most, max_len=max_len
    )
    used, first, last = attention_positions.reached(config, causal)
    each = [
        int(attention_positions.buckets(torch.tensor(r), n_buckets=n_buckets, max_distance=most, causal=causal))
        for r in range(-max_len + 1, 1 if causal else max_len)
    ]
    assert used == len(set(each))
    assert first == max_len - each.count(each[0])
    assert last == max_len - 1
