"""Measures of how unsure a step was: certain, even, and with the tail that label smoothing teaches."""

import numpy as np
import pytest

from transformer.analysis.sampling_stages import entropy_of_best, entropy_of_smoothed, other_share


def smoothed(smoothing, size):
    probs = np.full(size, smoothing / size)
    probs[7] += 1 - smoothing
    return np.log(probs)[None]


def test_certain_is_0_and_even_is_the_most():
    certain = np.full((1, 40), -np.inf, dtype=np.float32)
    certain[0, 3] = 0.0
    even = np.full((1, 40), -np.log(40), dtype=np.float32)
    for measure, most in ((other_share, 1 - 1 / 40), (entropy_of_best, np.log2(10))):
        assert str(measure(certain)[0]) == "0.0"
        assert measure(even) == pytest.approx(most, rel=1e-6)


def test_a_coin_between_two_is_one_bit_whatever_the_tail():
    probs = np.array([[0.4, 0.4, *[0.2 / 1000] * 1000]])
    assert entropy_of_best(np.log(probs), count=2) == pytest.approx(1)
    assert entropy_of_best(np.log(probs)) == pytest.approx(1, abs=0.05)


def test_the_tail_of_label_smoothing_misleads_the_entropy_only():
    rows = smoothed(0.1, 5000)
    entropy = -(np.exp(rows) * rows).sum() / np.log(2)
    assert entropy == pytest.approx(entropy_of_smoothed(0.1, 5000))
    assert entropy > 1.6
    assert entropy_of_best(rows)[0] < 0.01
    assert other_share(rows) == pytest.approx(0.1, rel=1e-3)


def test_without_smoothing_there_is_no_tail():
    assert entropy_of_smoothed(0.0, 5000) == 0.0
    assert entropy_of_smoothed(1.0, 8) == pytest.approx(3)


def test_fewer_pieces_than_asked_for_are_all_of_them():
    probs = np.array([[0.5, 0.25, 0.25]])
    assert entropy_of_best(np.log(probs)) == pytest.approx(1.5)
