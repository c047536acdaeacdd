"""Attention in tiles ends as a softmax over the whole row does, and has its numbers wherever it stops."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.transformer.featured import FEATURED
from tests.transformer.tiny import DECODER, ENCODER, random_ids, tiny_model
from transformer.analysis.tiled_attention import SCORE_BYTES, kept_bytes, score_bytes, tiles
from transformer.errors import QueryError
from transformer.tap import Recorder, tap_of

numbers = st.floats(-60, 60, width=32)


@st.composite
def rows(draw):
    """Scores of a row with closed keys, and the keys' values."""
    n, d = draw(st.integers(1, 24)), draw(st.integers(1, 4))
    scores, closed = draw(arrays(np.float64, n, elements=numbers)), draw(arrays(np.bool_, n))
    return np.where(closed, -np.inf, scores), draw(arrays(np.float64, (n, d), elements=numbers))


def softmax(scores):
    weights = torch.from_numpy(scores).softmax(dim=0).numpy()
    return np.nan_to_num(weights)  # all closed: 0 ÷ 0


@given(rows(), st.integers(1, 30))
def test_each_tile_has_what_a_softmax_over_the_keys_until_then_has(row, size):
    scores, values = row
    found = tiles(scores, values, size=size)
    assert [(one.first, one.end) for one in found] == [
        (first, min(first + size, len(scores))) for first in range(0, len(scores), size)
    ]
    for one in found:
        so_far = scores[: one.end]
        assert one.peak == so_far.max()
        if np.isfinite(one.peak):
            assert np.allclose(one.total, np.exp(so_far - one.peak).sum(), rtol=1e-12)
        np.testing.assert_allclose(one.output, softmax(so_far) @ values[: one.end], rtol=1e-11, atol=1e-11)
        assert one.n_open == np.isfinite(scores[one.first : one.end]).sum()


@given(rows(), st.integers(1, 30))
def test_what_was_summed_is_rescaled_exactly_where_the_largest_score_rises(row, size):
    found = tiles(*row, size=size)
    peaks = [-np.inf, *(one.peak for one in found)]
    for old, one in zip(peaks, found, strict=False):
        assert (one.factor < 1) == (one.peak > old and np.exp(old - one.peak) < 1)
        assert one.n_open or (one.factor == 1 and one.peak == old)  # a closed tile is skipped


def test_a_row_of_closed_keys_gives_zeros_as_the_model_does():
    last = tiles(np.full(5, -np.inf), np.ones((5, 3)), size=2)[-1]
    assert (last.total, last.peak) == (0, -np.inf)
    assert last.output.tolist() == [0, 0, 0]


def test_a_tile_of_no_keys_is_refused():
    with pytest.raises(QueryError, match="a tile of 0 keys"):
        tiles(np.zeros(3), np.zeros((3, 1)), size=0)


@pytest.mark.parametrize("features", [{}, DECODER, ENCODER, FEATURED["own decoder"]])
def test_bytes_of_scores_are_those_of_a_pass_that_writes_them(features):
    model, n = tiny_model(dtype=torch.float32, **features), 7
    recorder = Recorder(("*.scores",))
    model(random_ids(1, n), random_ids(1, n), tap=tap_of(recorder))
    assert score_bytes(model.config, n) == sum(one.nbytes for one in recorder.values.values())
    n_rows = sum(one.nelement() // n for one in recorder.values.values())
    assert kept_bytes(model.config, n) == 2 * n_rows * SCORE_BYTES
