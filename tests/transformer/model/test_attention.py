"""Attention is its definition row by row, whether somebody looks or not; masks hide the future and padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.model.attention import scaled_dot_product_attention
from transformer.model.attention_scores import Scoring, capped, masked_softmax
from transformer.model.masks import causal_mask, combine_masks, padding_mask
from transformer.model.taps import Recorder, tap_of


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


HOW = [Scoring(0.5), Scoring(0.3), Scoring(0.5, cap=0.8), Scoring(0.5, fill=-1e9), Scoring(0.5, cap=2.0, fill=-3.0)]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("biased", [True, False])
def test_tapped_and_untapped_are_the_definition_also_of_a_row_that_may_see_nothing(how, biased):
    q, k, v = (torch.randn(2, 3, n, 4, dtype=torch.float64) for n in (5, 7, 7))
    bias = torch.randn(1, 3, 5, 7, dtype=torch.float64) if biased else None
    mask = torch.rand(2, 1, 5, 7) < 0.6
    mask[..., 0] = True
    mask[1, 0, 2] = False
    for tap in (tap_of(), tap_of(Recorder(("*",)))):
        for own in (mask, None) if biased else (mask,):
            found = scaled_dot_product_attention(q, k, v, own, how=how, bias=bias, tap=tap)
            expected = by_hand(q, k, v, torch.ones_like(mask) if own is None else own, how, bias)
            assert torch.allclose(found, expected, rtol=0, atol=1e-10)


def test_scores_do_not_overflow_and_a_closed_row_is_even_with_a_finite_fill_and_empty_without():
    weights = masked_softmax(torch.tensor([[1e30, -1e30, 3e38]]), torch.tensor([[True, True, False]]))
    assert weights.tolist() == [[1.0, 0.0, 0.0]]
    scores, mask = torch.randn(1, 1, 2, 4), torch.tensor([[True, True, False, False], [False] * 4])[None, None]
    filled, empty = masked_softmax(scores, mask, fill=-1e9), masked_softmax(scores, mask)
    assert (filled[0, 0, 1].tolist(), empty[0, 0, 1].tolist()) == ([0.25] * 4, [0.0] * 4)
    assert torch.equal(filled[0, 0, 0], empty[0, 0, 0])  # e^-1e9 is 0
    assert capped(torch.tensor([-1e6, 1e6]), 50.0).abs().max() <= 50.0


@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(1, 5))
def test_a_query_sees_itself_and_the_past_only_and_nobody_padding(rows, n_queries):
    causal, padding = causal_mask(n_queries, offset=5 - n_queries), padding_mask(torch.tensor(rows), pad_id=2)
    before = causal.clone()
    expected = [[[k <= q and row[k] != 2 for k in range(5)] for q in range(5 - n_queries, 5)] for row in rows]
    assert combine_masks(causal, padding).tolist() == [[row] for row in expected]
    assert torch.equal(combine_masks(causal), before)  # the arguments are as they were
