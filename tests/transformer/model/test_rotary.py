import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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


def by_hand(x, numbers, *, offset=0):
    """The definition, number by number: each pair turns by position times its frequency [B, H, T, d]."""
    d_head = x.size(-1)
    n = int(d_head * numbers.share)
    result = x.clone()
    for t in range(x.size(2)):
        for i in range(n // 2):
            angle = (t + offset) * _frequency(i, n, numbers)
            size = _magnitude(numbers)
            a, b = x[:, :, t, i], x[:, :, t, i + n // 2]
            result[:, :, t, i] = size * (a * math.cos(angle) - b * math.sin(angle))
            result[:, :, t, i + n // 2] = size * (b * math.cos(angle) + a * math.sin(angle))
    return result


def _frequency(i, n, numbers):
    own = numbers.base ** (-2 * i / n)
    if numbers.scaling == "none":
        return own
    if numbers.scaling == "linear":
        return own / numbers.factor
    turns = numbers.original_len * own / (2 * math.pi)
    if numbers.scaling == "llama3":
        if turns < numbers.slow:
            return own / numbers.factor
        if turns > numbers.fast:
            return own
        share = (turns - numbers.slow) / (numbers.fast - numbers.slow)
        return share * own + (1 - share) * own / numbers.factor

    def pair(turns):  # where so many turns are made: the inverse of the line above
        return n * math.log(numbers.original_len / (2 * math.pi * turns)) / (2 * math.log(numbers.base))

    first, last = pair(numbers.fast), pair(numbers.slow)
    if numbers.rounded:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, n - 1)
    ramp = min(max((i - first) / (last - first), 0), 1)
    return own * (1 - ramp) + own / numbers.factor * ramp


def _magnitude(numbers):
    if numbers.magnitude is not None:
        return numbers.magnitude
    return 0.1 * math.log(numbers.factor) + 1 if numbers.scaling == "yarn" else 1.0


def turned(x, numbers, *, offset=0, dtype=torch.float64):
    x = x.to(dtype)
    speeds = rotary.frequencies(numbers, x.size(-1), max_len=64)
    turn = rotary.rotation(speeds, rotary.magnitude(numbers), torch.arange(offset, offset + x.size(2)), like=x)
    return rotary.rotate(x, turn)


def vectors(n_tokens=9, d_head=16):
    return torch.randn(2, 3, n_tokens, d_head, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("offset", [0, 70])
def test_it_is_the_definition(name, offset):
    x, numbers = vectors(), NUMBERS[name]
    assert torch.allclose(turned(x, numbers, offset=offset), by_hand(x, numbers, offset=offset), rtol=0, atol=1e-10)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_only_a_share_of_a_head_turns(share):
    x, numbers = vectors(), Rotary(share=share)
    found = turned(x, numbers)
    assert torch.allclose(found, by_hand(x, numbers), rtol=0, atol=1e-10)
    n = int(16 * share)
    assert torch.equal(found[..., n:], x[..., n:])
    assert not torch.allclose(found[:, :, 1:, :n], x[:, :, 1:, :n])


@given(st.sampled_from(sorted(NUMBERS)), st.integers(0, 40), st.integers(0, 40), st.integers(0, 500))
def test_a_score_depends_on_the_distance_alone(name, i, j, further):
    q, k = vectors(2)[0, 0, 0], vectors(2)[0, 0, 1]

    def score(i, j):
        return (
            turned(q.view(1, 1, 1, -1), NUMBERS[name], offset=i).flatten()
            @ turned(k.view(1, 1, 1, -1), NUMBERS[name], offset=j).flatten()
        )

    assert float(score(i, j)) == pytest.approx(float(score(i + further, j + further)), abs=1e-9)


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
    assert torch.allclose(turned(x, numbers, dtype=torch.float32), expected, rtol=0, atol=1e-5)
