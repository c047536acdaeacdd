from __future__ import annotations

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.charts.heatmap import HALF_DIGITS, THREE_BYTE_DIGITS, shortened
from tests.pages.reading import three_byte_numbers


def test_a_small_map_is_left_alone():
    values = np.random.default_rng(0).random((64, 64), dtype=np.float32)
    sent, digits = shortened(values)
    assert digits is None
    np.testing.assert_array_equal(sent, values)


@given(
    arrays.arrays(
        np.float32, (8,), elements=st.floats(width=32, allow_nan=True, allow_infinity=True, allow_subnormal=False)
    )
)
def test_five_digits_stay_and_the_lowest_byte_goes(odd):
    values = np.tile(odd, (65, 8))
    sent, _ = shortened(values)
    finite = np.isfinite(values)
    np.testing.assert_allclose(sent[finite], values[finite], rtol=2**-16)
    np.testing.assert_array_equal(sent[~finite], values[~finite])
    largest = np.abs(values) > 3e38  # those might round up to infinity, and may stay whole
    assert not (sent[finite & ~largest].view(np.uint32) & 0xFF).any()


@pytest.mark.parametrize(("side", "left"), [(65, THREE_BYTE_DIGITS), (256, THREE_BYTE_DIGITS), (257, HALF_DIGITS)])
def test_it_says_how_many_digits_are_left(side, left):
    values = np.random.default_rng(1).dirichlet(np.ones(side), size=side).astype(np.float32)
    sent, digits = shortened(values)
    assert digits == left
    np.testing.assert_allclose(sent, values, rtol=0.5 * 10.0 ** (1 - left), atol=1e-7)


def test_what_loses_nothing_says_so():
    for side in (65, 300):
        assert shortened(np.eye(side, dtype=np.float32))[1] is None


def test_numbers_beyond_half_precision_stay_whole():
    values = np.full((300, 300), 1e6, dtype=np.float32)
    sent, digits = shortened(values)
    assert (sent.dtype, digits) == (np.float32, None)


def test_three_bytes_are_read_back():
    values = np.random.default_rng(2).normal(size=(70, 70)).astype(np.float32)
    sent, _ = shortened(values)
    raw = sent.view(np.uint8).reshape(-1, 4)[:, 1:].tobytes()
    np.testing.assert_array_equal(three_byte_numbers(raw), sent.ravel())
