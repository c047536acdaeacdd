"""A query sees itself and the past, and nobody sees padding."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.model.masks import causal_mask, combine_masks, padding_mask


@given(st.integers(1, 12), st.integers(0, 12))
def test_a_query_sees_itself_and_the_past_only(n_queries, offset):
    mask = causal_mask(n_queries, offset=offset)
    assert mask.shape == (1, 1, n_queries, offset + n_queries)
    assert mask.dtype == torch.bool
    for query in range(n_queries):
        assert mask[0, 0, query].tolist() == [key <= offset + query for key in range(offset + n_queries)]


@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(0, 4))
def test_nobody_attends_to_padding(rows, pad_id):
    mask = padding_mask(torch.tensor(rows), pad_id=pad_id)
    assert mask.shape == (len(rows), 1, 1, 5)
    assert mask[:, 0, 0].tolist() == [[i != pad_id for i in row] for row in rows]


def test_combined_masks_allow_what_all_allow():
    causal, padding = causal_mask(3), padding_mask(torch.tensor([[5, 0, 6], [5, 6, 0]]), pad_id=0)
    combined = combine_masks(causal, padding)
    assert combined.shape == (2, 1, 3, 3)
    assert torch.equal(combined, causal & padding)
    assert torch.equal(combine_masks(causal), causal)
    assert causal.all(dim=-1).tolist() == [[[False, False, True]]]  # the arguments are as they were
