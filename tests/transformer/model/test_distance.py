"""Buckets and slopes of distances are those of T5 and Bloom."""

import pytest
import torch

from tests.transformer.tiny import ONE_STACK, tiny_config
from transformer.model import attention_positions


def apart(n, *, offset=0):
    return attention_positions.distances(torch.arange(offset + n), offset=offset)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (8, 20)])
def test_buckets_are_those_of_transformers(causal, n_buckets, max_distance):
    from transformers.models.t5.modeling_t5 import T5Attention

    expected = T5Attention._relative_position_bucket(
        apart(300), bidirectional=not causal, num_buckets=n_buckets, max_distance=max_distance
    )
    found = attention_positions.buckets(apart(300), n_buckets=n_buckets, max_distance=max_distance, causal=causal)
    assert torch.equal(found, expected)


@pytest.mark.parametrize("n_heads", [1, 3, 8, 12])
def test_slopes_fall_by_one_ratio_and_are_all_different(n_heads):
    found = attention_positions.slopes(n_heads)
    assert len(set(found)) == n_heads
    assert all(0 < slope < 1 for slope in found)
    if n_heads & (n_heads - 1) == 0:
        assert found == [2 ** (-8 * (i + 1) / n_heads) for i in range(n_heads)]


@pytest.mark.parametrize("n_heads", [3, 8])
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
