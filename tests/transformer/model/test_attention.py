import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from tests.transformer.tiny import joined, tiny_config
from transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.model.attention_scores import masked_softmax
from transformer.model.masks import causal_mask, padding_mask
from transformer.model.taps import Recorder, tap_of

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-4}


def random_qkv(n_queries=5, n_keys=7, *, dtype=torch.float64, seed=0):
    """Queries [2, 3, Q, 4], keys and values [2, 3, K, 4]."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (2, 3, n_queries, 4), (2, 3, n_keys, 4), (2, 3, n_keys, 4)
    return [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes]


def random_mask(n_queries=5, n_keys=7, *, seed=0):
    """Every query may attend to at least one key [2, 1, Q, K]."""
    mask = torch.rand(2, 1, n_queries, n_keys, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., 0] = True
    return mask


def recorded(q, k, v, mask, *patterns):
    recorder = Recorder(patterns or ("*",))
    output = scaled_dot_product_attention(q, k, v, mask, tap=tap_of(recorder))
    return output, recorder.values


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_tapped_and_untapped_equal_torchs_own(dtype):
    q, k, v = random_qkv(dtype=dtype)
    mask = random_mask()
    expected = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask).to(dtype)
    tapped, _ = recorded(q, k, v, mask)
    for output in (tapped, scaled_dot_product_attention(q, k, v, mask)):
        assert torch.allclose(output, expected, rtol=0, atol=TOLERANCE[dtype])


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_rows_of_weights_are_distributions_over_what_may_be_seen(n_queries, n_keys, seed):
    q, k, v = random_qkv(n_queries, n_keys, seed=seed)
    mask = random_mask(n_queries, n_keys, seed=seed)
    weights = recorded(q, k, v, mask)[1]["weights"]
    assert weights.shape == (2, 3, n_queries, n_keys)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 3, n_queries, dtype=torch.float64), atol=1e-12)
    assert (weights[(~mask).expand_as(weights)] == 0).all()
    assert (weights[mask.expand_as(weights)] > 0).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_future_and_padding_weigh_exactly_nothing(dtype):
    q, k, v = random_qkv(6, 6, dtype=dtype)
    ids = torch.tensor([[5, 6, 7, 8, 9, 4], [5, 6, 7, 0, 0, 0]])
    mask = causal_mask(6) & padding_mask(ids, pad_id=0)
    weights = recorded(q, k, v, mask)[1]["weights"]
    assert (weights.triu(diagonal=1) == 0).all()
    assert (weights[1, :, :, 3:] == 0).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_query_that_sees_nothing_gives_zeros_not_nan(dtype):
    q, k, v = random_qkv(dtype=dtype)
    mask = random_mask()
    mask[0, :, 2] = False  # one query
    mask[1] = False  # a whole sentence
    tapped, values = recorded(q, k, v, mask)
    assert (values["weights"][0, :, 2] == 0).all()
    assert (values["weights"][1] == 0).all()
    for output in (tapped, scaled_dot_product_attention(q, k, v, mask)):
        assert (output[0, :, 2] == 0).all()
        assert (output[1] == 0).all()
        assert output.isfinite().all()
        assert (output[0, :, 1] != 0).all()


def test_huge_scores_do_not_overflow():
    scores = torch.tensor([[1e30, -1e30, 3e38]])
    weights = masked_softmax(scores, torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[1.0, 0.0, 0.0]]


def test_scores_are_scaled_products_before_the_mask():
    q, k, v = random_qkv()
    scores = recorded(q, k, v, random_mask(), "scores")[1]["scores"]
    assert torch.allclose(scores[1, 2, 3, 4], q[1, 2, 3] @ k[1, 2, 4] / 2)
    assert scores.isfinite().all()


def reference(attention: MultiHeadAttention, config) -> nn.MultiheadAttention:
    """torch's own with the same parameters."""
    torchs = nn.MultiheadAttention(
        config.d_model, config.n_heads, bias=config.bias, batch_first=True, dtype=torch.float64
    )
    state = {"in_proj_weight": joined(attention), "out_proj.weight": attention.out_proj.weight}
    if config.bias:
        state["in_proj_bias"] = joined(attention, "bias")
        state["out_proj.bias"] = attention.out_proj.bias
    torchs.load_state_dict(state)
    return torchs


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("n_heads", [1, 3, 12])
def test_multi_head_attention_equals_torchs_own(bias, n_heads):
    torch.manual_seed(0)
    config = tiny_config(bias=bias, n_heads=n_heads)
    attention = MultiHeadAttention(config).double()
    x, context = (torch.randn(2, length, 12, dtype=torch.float64) for length in (5, 7))
    mask = random_mask()
    torchs_mask = ~mask.expand(2, n_heads, 5, 7).reshape(2 * n_heads, 5, 7)  # True = hidden, and one a head
    expected, expected_weights = reference(attention, config)(
        x, context, context, attn_mask=torchs_mask, average_attn_weights=False
    )
    recorder = Recorder(("weights",))
    tapped = attention(x, context, mask, tap=tap_of(recorder))
    assert torch.allclose(recorder.values["weights"], expected_weights, rtol=0, atol=1e-10)
    for output in (tapped, attention(x, context, mask)):
        assert torch.allclose(output, expected, rtol=0, atol=1e-10)
