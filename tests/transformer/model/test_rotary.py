"""Rotary positions turn as transformers turns them."""

import numpy as np
import pytest
import torch

from transformer.model import rotary
from transformer.model.attention_features import Rotary

LLAMA3 = {"scaling": "llama3", "factor": 8.0, "slow": 1.0, "fast": 4.0, "original_len": 32}
YARN = {"scaling": "yarn", "factor": 4.0, "original_len": 64}
SCALINGS = {
    "none": {},
    "linear": {"scaling": "linear", "factor": 2.5},
    "llama3": LLAMA3,
    "yarn": YARN,
    "yarn, not rounded": {**YARN, "rounded": False, "magnitude": 0.7},
}
NUMBERS = {name: Rotary(base=500.0, **changes) for name, changes in SCALINGS.items()}


def turned(x, numbers, *, offset=0, dtype=torch.float64):
    x = x.to(dtype)
    speeds = rotary.frequencies(numbers, x.size(-1), max_len=64)
    turn = rotary.rotation(speeds, rotary.magnitude(numbers), torch.arange(offset, offset + x.size(2)), like=x)
    return rotary.rotate(x, turn)


def vectors(n_tokens=9, d_head=16):
    return torch.randn(2, 3, n_tokens, d_head, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_only_a_share_of_a_head_turns(share):
    x, n = vectors(), int(16 * share)
    found = turned(x, Rotary(share=share))
    assert torch.equal(found[..., n:], x[..., n:])
    assert torch.allclose(found[..., :n], turned(x[..., :n], Rotary()), rtol=0, atol=1e-12)


def test_a_layer_with_a_window_has_a_base_of_its_own_and_no_scaling():
    numbers = Rotary(base=1e6, local_base=10_000.0, scaling="linear", factor=8.0)
    plain = rotary.frequencies(Rotary(), 16, max_len=64)
    assert np.array_equal(rotary.frequencies(numbers, 16, max_len=64, local=True), plain)
    assert np.allclose(rotary.frequencies(numbers, 16, max_len=64) * 8, 1e6 ** -(np.arange(0, 16, 2) / 16))
    only_base = Rotary(scaling="linear", factor=2.0)
    assert np.array_equal(rotary.frequencies(only_base, 16, max_len=64, local=True), plain / 2)


@pytest.mark.parametrize("name", NUMBERS)
def test_it_is_what_transformers_computes(name):
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    numbers = NUMBERS[name]
    settings = {"rope_type": "default", "rope_theta": numbers.base}
    if numbers.scaling == "linear":
        settings |= {"rope_type": "linear", "factor": numbers.factor}
    elif numbers.scaling == "llama3":
        settings |= {"rope_type": "llama3", "factor": numbers.factor, "low_freq_factor": numbers.slow,
                     "high_freq_factor": numbers.fast, "original_max_position_embeddings": 32}  # fmt: skip
    elif numbers.scaling == "yarn":
        settings |= {"rope_type": "yarn", "factor": numbers.factor, "truncate": numbers.rounded,
                     "original_max_position_embeddings": 64}  # fmt: skip
        settings |= {"attention_factor": numbers.magnitude} if numbers.magnitude else {}
    config = LlamaConfig(
        hidden_size=48, num_attention_heads=3, head_dim=16, max_position_embeddings=64, rope_parameters=settings
    )
    x = vectors(60).float()
    cos, sin = LlamaRotaryEmbedding(config)(x, torch.arange(60)[None])
    expected, _ = apply_rotary_pos_emb(x, x, cos, sin)
    later = turned(x[:, :, 40:], numbers, offset=40, dtype=torch.float32)
    assert torch.allclose(later, expected[:, :, 40:], rtol=0, atol=1e-5)
    assert torch.allclose(turned(x, numbers, dtype=torch.float32), expected, rtol=0, atol=1e-5)
