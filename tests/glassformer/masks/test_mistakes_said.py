"""The mistakes that the page Masks lists, each computed with torch."""

import pytest
import torch

from glassformer.masks.mask_texts import MISTAKES

T = 5
CAUSAL = torch.ones(T, T).tril().bool()
ADDED = torch.zeros(T, T).masked_fill(~CAUSAL, -torch.inf)  # 0 = open, −∞ = closed


def test_two_conventions():
    scores = torch.randn(T, T, generator=torch.Generator().manual_seed(0))
    for fill in (-1e9, -torch.inf):
        weights = scores.masked_fill(ADDED == 0, fill).softmax(-1)
        assert weights[0, 0] == 0  # query 1 sees only what comes after it
        assert weights[:-1].tril().max() == 0
        assert (ADDED == 0)[-1].all()  # for the last query every key is closed
        if fill == -1e9:
            torch.testing.assert_close(weights[-1], torch.full((T,), 1 / T))
        else:
            assert weights[-1].isnan().all()
    assert "If closed scores become −1e9, its weights are all equal; if they become −∞, its weights are NaN" in MISTAKES
    pad = torch.ones(T, T).bool()
    assert torch.equal(pad & ADDED.bool(), ~CAUSAL)
    assert torch.equal(pad & (ADDED == 0), CAUSAL)


def test_bool_and_float_do_not_combine():
    with pytest.raises(RuntimeError):
        _ = CAUSAL & ADDED


def test_the_axis_of_padding():
    ids = torch.tensor([[3, 4, 0]])
    queries, keys = (ids != 0)[:, None, :, None], (ids != 0)[:, None, None, :]
    assert queries.expand(1, 1, 3, 3)[0, 0, 0].all()  # a real query still reads padding
    assert not queries.expand(1, 1, 3, 3)[0, 0, 2].any()
    assert keys.expand(1, 1, 3, 3)[0, 0].tolist() == [[True, True, False]] * 3
    scores = torch.zeros(1, 1, 3, 3).masked_fill(~queries, -torch.inf)
    assert scores.softmax(-1)[0, 0, 2].isnan().all()


def test_a_mask_with_three_axes_is_lined_up_with_heads():
    mask = torch.ones(2, T, T).bool()
    mask[1] = False  # sentence 2 sees nothing
    seen = mask.broadcast_to(2, 2, T, T)  # as many sentences as heads: no error
    assert seen[:, 0].all()
    assert not seen[:, 1].any()
