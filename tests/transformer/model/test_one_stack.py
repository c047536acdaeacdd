"""A decoder alone and an encoder alone, grouped heads, and heads of any width: against torch and plain loops."""

import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from tests.transformer.model.test_transformer import layer_parameters
from tests.transformer.tiny import DECODER, ENCODER, padded_source, random_ids, tiny_config, tiny_model
from transformer.errors import ConfigError, QueryError
from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import KVCache
from transformer.model.config import ModelConfig
from transformer.model.masks import causal_mask
from transformer.model.transformer import Transformer

FEATURES = [{}, {"norm": "post", "final_norm": False, "activation": "gelu"}, {"bias": False, "positions": "learned"}]


def torchs_layers(model, stack):
    """torch's own encoder layers with the parameters of a stack: it builds a decoder alone of the same layers."""
    config, layers = model.config, []
    for layer in stack.layers:
        own = nn.TransformerEncoderLayer(
            config.d_model, config.n_heads, config.d_ff, dropout=0.0, activation=config.activation,
            layer_norm_eps=config.norm_eps, batch_first=True, norm_first=config.norm == "pre", bias=config.bias,
            dtype=torch.float64,
        )  # fmt: skip
        own.load_state_dict({name.removeprefix("x."): v for name, v in layer_parameters("x", layer, config.bias)})
        layers.append(own.train())  # in evaluation mode it leaves its own equations for a faster path
    return layers


def expected_stream(model, stack, ids, *, causal):
    x = stack.embedding(ids, model.src_table)
    future = torch.ones(ids.size(1), ids.size(1), dtype=torch.bool).triu(1) if causal else None
    for layer in torchs_layers(model, stack):
        x = layer(x, src_mask=future, src_key_padding_mask=ids == 0, is_causal=causal)
    return stack.final_norm(x)


@pytest.mark.parametrize("features", FEATURES)
def test_an_encoder_alone_equals_torchs_layers(features):
    model, src = tiny_model(**ENCODER, **features), padded_source()
    found = model(src, torch.zeros(3, 0, dtype=torch.long))
    expected = expected_stream(model, model.encoder, src, causal=False)
    assert found.shape == (3, 6, 12)
    assert torch.allclose(found[src != 0], expected[src != 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("features", FEATURES)
def test_a_decoder_alone_equals_torchs_layers(features):
    model, ids = tiny_model(**DECODER, **features), padded_source()
    expected = expected_stream(model, model.decoder, ids, causal=True) @ model.src_table.T
    found = model(random_ids(3, 2), ids)  # nothing reads the source
    assert torch.allclose(found[ids != 0], expected[ids != 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("changes", [{}, {"n_kv_heads": 1, "d_head": 5}])
@pytest.mark.parametrize("parts", [[1, 1, 1, 1, 1, 1, 1], [4, 1, 1, 1], [3, 2, 2], [7]])
def test_a_prompt_and_steps_through_the_cache_are_one_pass(changes, parts):
    model, ids = tiny_model(**DECODER, **changes), random_ids(2, 7)
    cache = KVCache(3)
    steps = torch.cat([model.decode(chunk, cache=cache) for chunk in ids.split(parts, dim=1)], dim=1)
    assert torch.allclose(model.project(steps), model(ids, ids), rtol=0, atol=1e-10)


def plain_attention(attention, x, context, mask):
    """Head by head; keys and values of shared heads are looked up, not repeated."""
    d, shared = attention.d_head, attention.n_heads // attention.n_kv_heads
    heads = []
    for head in range(attention.n_heads):
        group = head // shared
        rows, keys = slice(head * d, (head + 1) * d), slice(group * d, (group + 1) * d)
        q = x @ attention.q_proj.weight[rows].T + attention.q_proj.bias[rows]
        k = context @ attention.k_proj.weight[keys].T + attention.k_proj.bias[keys]
        v = context @ attention.v_proj.weight[keys].T + attention.v_proj.bias[keys]
        scores = (q @ k.transpose(1, 2) / math.sqrt(d)).masked_fill(~mask, -torch.inf)
        heads.append(scores.softmax(-1) @ v)
    return torch.cat(heads, dim=-1) @ attention.out_proj.weight.T + attention.out_proj.bias


@pytest.mark.parametrize(("n_heads", "n_kv_heads", "d_head"), [(6, 2, 2), (6, 1, 5), (4, 4, 7), (3, 3, 1), (5, 5, 2)])
def test_shared_heads_of_any_width_are_what_a_plain_loop_gives(n_heads, n_kv_heads, d_head):
    torch.manual_seed(0)
    attention = MultiHeadAttention(tiny_config(n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_head)).double()
    nn.init.normal_(attention.k_proj.bias)
    x, mask = torch.randn(2, 5, 12, dtype=torch.float64), causal_mask(5)
    context = torch.randn(2, 5, 12, dtype=torch.float64)
    for keys in (x, context):
        expected = plain_attention(attention, x, keys, mask[0])
        assert torch.allclose(attention(x, keys, mask), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("stacks", [{}, DECODER, ENCODER])
@pytest.mark.parametrize("heads", [{"d_head": 5}, {"n_kv_heads": 1}, {"n_heads": 6, "n_kv_heads": 2, "bias": False}])
@pytest.mark.parametrize("others", [{}, {"tie_output": False, "output_bias": True, "positions": "learned"}])
def test_the_arithmetic_of_parameters_is_that_of_the_model(stacks, heads, others):
    config = tiny_config(**stacks, **heads, **others)
    assert config.count_parameters() == sum(p.numel() for p in Transformer(config).parameters())


def test_d_head_is_free_of_d_model_and_has_its_usual_value_when_nothing_is_said():
    assert (tiny_config().d_head, tiny_config().n_kv_heads) == (4, 3)
    assert tiny_config(n_heads=5, d_head=7).d_head == 7
    with pytest.raises(ConfigError, match=r"n_kv_heads: 6 heads cannot evenly share 4 .* 1, 2, 3, 6\."):
        tiny_config(n_heads=6, n_kv_heads=4)


def test_a_model_needs_a_layer_and_a_lone_stack_has_one_vocabulary():
    with pytest.raises(ConfigError, match=r"n_decoder_layers: found 0, and there are no encoder layers"):
        tiny_config(n_encoder_layers=0, n_decoder_layers=0)
    for name in ("n_encoder_layers", "n_decoder_layers"):
        with pytest.raises(
            ConfigError, match=r"shared_vocab: found false, but a model with only an encoder or only a decoder"
        ):
            tiny_config(**{name: 0})


def test_annotations_that_are_text_are_checked_by_their_meaning():
    """As all are under `from __future__ import annotations`."""

    @dataclass(frozen=True, kw_only=True)
    class Spelt(ModelConfig):
        d_ff: "int" = 8
        bias: "bool" = True

    values = {name: getattr(tiny_config(), name) for name in ("n_encoder_layers", "n_decoder_layers", "d_model",
              "n_heads", "src_vocab_size", "tgt_vocab_size")}  # fmt: skip
    assert Spelt.__dataclass_fields__["d_ff"].type == "int"
    assert Spelt(**values).d_head == 4
    for wrong in ({"d_ff": "8"}, {"bias": 1}):
        with pytest.raises(ConfigError):
            Spelt(**values, **wrong)


def test_what_is_not_there_is_said():
    with pytest.raises(QueryError, match="no encoder"):
        tiny_model(**DECODER).encode(random_ids(1, 3))
    with pytest.raises(QueryError, match="no decoder"):
        tiny_model(**ENCODER).decode(random_ids(1, 3))
