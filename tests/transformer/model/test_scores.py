import pytest
import torch

from tests.transformer.model.test_attention import random_mask, random_qkv
from transformer.model.attention import scaled_dot_product_attention
from transformer.model.attention_scores import Scoring, capped, masked_softmax
from transformer.tap import Recorder, tap_of


def by_hand(q, k, v, mask, how, bias):
    """Row by row, in plain arithmetic."""
    result = torch.zeros(*q.shape[:3], v.size(-1), dtype=q.dtype)
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        scores = torch.stack([(q[b, h, i] * k[b, h, j]).sum() * how.scale for j in range(k.size(2))])
        if bias is not None:
            scores = scores + bias[0, h, i]
        if how.cap is not None:
            scores = torch.tanh(scores / how.cap) * how.cap
        fill = -torch.inf if how.fill is None else how.fill
        scores = torch.where(mask[b, 0, i], scores, torch.tensor(fill, dtype=q.dtype))
        exps = (scores - scores.max()).exp() if scores.max() > -torch.inf else torch.zeros_like(scores)
        weights = exps / exps.sum() if exps.sum() else exps
        result[b, h, i] = (weights[:, None] * v[b, h]).sum(0)
    return result


HOW = [Scoring(1.0), Scoring(0.3), Scoring(0.5, cap=0.8), Scoring(0.5, fill=-1e9), Scoring(0.5, cap=2.0, fill=-3.0)]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("closed", [True, False])
def test_tapped_and_untapped_are_the_definition(how, biased, closed):
    q, k, v = random_qkv()
    bias = torch.randn(1, 3, 5, 7, dtype=torch.float64) if biased else None
    mask = random_mask()
    if closed:
        mask[1, 0, 2] = False  # a row that may see nothing
    expected = by_hand(q, k, v, mask, how, bias)
    tapped = scaled_dot_product_attention(q, k, v, mask, how=how, bias=bias, tap=tap_of(Recorder(("*",))))
    plain = scaled_dot_product_attention(q, k, v, mask, how=how, bias=bias)
    for found in (tapped, plain):
        assert torch.allclose(found, expected, rtol=0, atol=1e-10)


def test_a_bias_without_a_mask_is_added_too():
    q, k, v = random_qkv()
    bias, everything = torch.randn(1, 3, 5, 7, dtype=torch.float64), torch.ones(2, 1, 5, 7, dtype=torch.bool)
    for tap in (tap_of(), tap_of(Recorder(("*",)))):
        found = scaled_dot_product_attention(q, k, v, None, bias=bias, tap=tap)
        assert torch.allclose(found, by_hand(q, k, v, everything, Scoring(0.5), bias), rtol=0, atol=1e-10)


def test_a_closed_row_is_uniform_with_a_finite_fill_and_empty_without():
    scores = torch.randn(1, 1, 2, 4)
    mask = torch.tensor([[True, True, False, False], [False] * 4])[None, None]
    filled, empty = masked_softmax(scores, mask, fill=-1e9), masked_softmax(scores, mask)
    assert filled[0, 0, 1].tolist() == [0.25] * 4
    assert empty[0, 0, 1].tolist() == [0.0] * 4
    assert torch.equal(filled[0, 0, 0], empty[0, 0, 0])  # e^-1e9 is 0


def test_a_cap_is_almost_nothing_for_small_scores_and_never_passed():
    scores = torch.tensor([-1e6, -0.01, 0.0, 0.01, 1e6], dtype=torch.float64)
    found = capped(scores, 50.0)
    assert found.abs().max() <= 50.0
    assert torch.allclose(found[1:4], scores[1:4], atol=1e-8)
    assert capped(scores, None) is scores
