"""Tables and turns of positions are the formulas of the papers and of other libraries, as long as the model reads."""

import math

import numpy as np
import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from tests.transformer.tiny import random_ids, tiny_config, tiny_model
from transformer.errors import QueryError
from transformer.model import rotary
from transformer.model.attention_features import Rotary
from transformer.model.positions import FixedPositions, fairseq_table, halves_table, sinusoidal_table
from transformer.model.transformer import Transformer


@pytest.mark.parametrize("d_model", [1, 7, 8])
def test_the_table_is_the_formula_and_halves_are_its_columns_in_another_order(d_model):
    table = sinusoidal_table(50, d_model)
    assert (table.shape, table.dtype) == ((50, d_model), torch.float32)
    for p in (0, 1, 17, 49):
        angles = [p / 10_000 ** ((j - j % 2) / d_model) for j in range(d_model)]
        expected = [math.cos(angle) if j % 2 else math.sin(angle) for j, angle in enumerate(angles)]
        assert table[p].tolist() == pytest.approx(expected, abs=1e-7)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(halves_table(50, d_model), table[:, order])


def test_layouts_are_those_of_transformers_and_a_feature_of_the_config():
    marian = MarianSinusoidalPositionalEmbedding(60, 10)
    assert torch.allclose(halves_table(60, 10), marian.create_weight(), rtol=0, atol=1e-5)
    m2m = M2M100SinusoidalPositionalEmbedding(60, 11, 1)
    assert torch.allclose(fairseq_table(60, 11, first=2), m2m.weights[2:62], rtol=0, atol=1e-5)
    expected = {"interleaved": sinusoidal_table(16, 12), "halves": halves_table(16, 12)}
    for layout, table in {**expected, "fairseq": fairseq_table(16, 12, first=2)}.items():
        assert torch.equal(FixedPositions(tiny_config(sinusoid_layout=layout, pad_id=1, unk_id=0)).table, table)


def test_sinusoids_are_not_stored_learned_positions_are_and_more_tokens_than_positions_are_refused():
    model = tiny_model()
    assert not any("positions" in name for name in model.state_dict())
    learned = Transformer(tiny_config(positions="learned")).state_dict()
    assert learned["encoder.embedding.positions.table"].shape == (16, 12)
    assert learned["decoder.embedding.positions.table"].std() > 0.1  # it has been given values
    assert model.encode(random_ids(1, 16)).shape == (1, 16, 12)
    with pytest.raises(QueryError, match="17 tokens were given; this model reads at most 16"):
        model.encode(random_ids(1, 17))
    with pytest.raises(QueryError, match="17 tokens"):
        model(random_ids(1, 3), random_ids(1, 17))


def turned(x, numbers, *, offset=0):
    speeds = rotary.frequencies(numbers, x.size(-1), max_len=64)
    turn = rotary.rotation(speeds, rotary.magnitude(numbers), torch.arange(offset, offset + x.size(2)), like=x)
    return rotary.rotate(x, turn)


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
YARN = {"factor": 4.0, "original_max_position_embeddings": 64}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"rope_type": "default"}),
        ({"factor": 2.5}, {"rope_type": "linear", "factor": 2.5}),
        ({"factor": 8.0, "slow": 1.0, "fast": 4.0, "original_len": 32}, {"rope_type": "llama3", **LLAMA3}),
        ({"factor": 4.0, "original_len": 64}, {"rope_type": "yarn", "truncate": True, **YARN}),
        (
            {"factor": 4.0, "original_len": 64, "rounded": False, "magnitude": 0.7},
            {"rope_type": "yarn", "truncate": False, "attention_factor": 0.7, **YARN},
        ),
    ],
)
def test_rotary_positions_turn_as_transformers_turns_them(ours, theirs):
    numbers = Rotary(base=500.0, **({"scaling": theirs["rope_type"], **ours} if ours else {}))
    sizes = {"hidden_size": 48, "num_attention_heads": 3, "head_dim": 16, "max_position_embeddings": 64}
    x = torch.randn(2, 3, 60, 16)
    cos, sin = LlamaRotaryEmbedding(LlamaConfig(**sizes, rope_parameters={"rope_theta": 500.0, **theirs}))(
        x, torch.arange(60)[None]
    )
    expected, _ = apply_rotary_pos_emb(x, x, cos, sin)
    assert torch.allclose(turned(x[:, :, 40:], numbers, offset=40), expected[:, :, 40:], rtol=0, atol=1e-5)
    assert torch.allclose(turned(x, numbers), expected, rtol=0, atol=1e-5)


def test_only_a_share_of_a_head_turns_and_a_layer_with_a_window_has_a_base_of_its_own_and_no_scaling():
    x = torch.randn(2, 3, 9, 16, dtype=torch.float64)
    for share, n in ((0.25, 4), (0.5, 8)):
        found = turned(x, Rotary(share=share))
        assert torch.equal(found[..., n:], x[..., n:])
        assert torch.allclose(found[..., :n], turned(x[..., :n], Rotary()), rtol=0, atol=1e-12)
    numbers = Rotary(base=1e6, local_base=10_000.0, scaling="linear", factor=8.0)
    plain = rotary.frequencies(Rotary(), 16, max_len=64)
    assert np.array_equal(rotary.frequencies(numbers, 16, max_len=64, local=True), plain)
    assert np.allclose(rotary.frequencies(numbers, 16, max_len=64) * 8, 1e6 ** -(np.arange(0, 16, 2) / 16))
    only_base = Rotary(scaling="linear", factor=2.0)
    assert np.array_equal(rotary.frequencies(only_base, 16, max_len=64, local=True), plain / 2)
