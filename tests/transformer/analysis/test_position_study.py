"""What is measured of a table of positions is its formula term by term, and what torch fits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer.analysis import positions as study
from transformer.model.positions import sinusoidal_table

sizes = st.integers(1, 33)
lengths = st.integers(3, 40)


def by_hand(p, j, d):
    """One value of the paper's table."""
    angle = p / 10_000 ** (2 * (j // 2) / d)
    return math.cos(angle) if j % 2 else math.sin(angle)


def random_table(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@given(lengths, sizes, st.integers(0, 5000))
def test_the_formula_is_the_papers_for_odd_and_even_widths(n, d, first):
    table = study.formula(n, d, first=first)
    expected = [[by_hand(first + p, j, d) for j in range(d)] for p in range(n)]
    np.testing.assert_allclose(table, expected, atol=1e-9)
    np.testing.assert_allclose(study.wavelengths(d), [2 * math.pi * 10_000 ** (2 * i / d) for i in range(-(-d // 2))])


def test_the_difference_from_the_formula_is_that_of_the_worst_value():
    table = sinusoidal_table(2500, 6).numpy().astype(np.float64)
    assert study.difference_from_formula(table) < 1e-6
    table[2400, 5] += 0.25
    assert study.difference_from_formula(table) == pytest.approx(0.25)


def test_similarity_is_the_dot_product_and_the_cosine_has_no_lengths():
    table = random_table(9, 5)
    table[4] = 0
    for p in range(9):
        for q in range(9):
            dot = sum(table[p, j] * table[q, j] for j in range(5))
            lengths = math.hypot(*table[p]) * math.hypot(*table[q])
            assert study.similarity(table)[p, q] == pytest.approx(dot)
            assert study.similarity(table, cosine=True)[p, q] == pytest.approx(dot / lengths if lengths else 0)


def test_by_distance_counts_every_pair_once():
    similar = np.array([[5.0, 1, 2], [1, 6, 4], [2, 4, 7]])
    found = study.by_distance(similar)
    np.testing.assert_allclose(found.mean, [6, 2.5, 2])
    np.testing.assert_allclose(found.low, [5, 1, 2])
    np.testing.assert_allclose(found.high, [7, 4, 2])
    assert found.spread == 3


def test_the_rotation_is_the_matrix_of_two_by_two_blocks():
    table, k, d = random_table(6, 7), 3, 7
    matrix = np.zeros((6, 6))
    for i in range(3):
        angle = k / 10_000 ** (2 * i / d)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [
            [math.cos(angle), math.sin(angle)],
            [-math.sin(angle), math.cos(angle)],
        ]
    expected = np.stack([matrix @ row[:6] for row in table])
    np.testing.assert_allclose(study.rotate(table, k), expected)
    np.testing.assert_allclose(study.rotation_errors(table, k), np.abs(expected[:-k] - table[k:, :6]).max(axis=1))
    assert study.rotation_errors(study.formula(40, 7), k).max() < 1e-6
    assert not study.rotation_errors(study.formula(5, 1), 1).any()  # a lone sine has nothing to turn with


def test_errors_are_what_torch_finds_too():
    table, k = random_table(40, 5, seed=2), 4
    fit = study.fit_shift(table, k)
    inputs, outputs = torch.tensor(table[:-k]), torch.tensor(table[k:])
    matrix = torch.linalg.lstsq(inputs[::2], outputs[::2]).solution
    rest = outputs[1::2]
    np.testing.assert_allclose(fit.predicted, (inputs @ matrix).numpy(), atol=1e-9)
    assert fit.fitted_error == pytest.approx(float((inputs @ matrix - outputs)[::2].norm() / outputs[::2].norm()))
    assert fit.held_out_error == pytest.approx(float((inputs @ matrix - outputs)[1::2].norm() / rest.norm()))
    assert fit.constant_error == pytest.approx(float((outputs[::2].mean(0) - rest).norm() / rest.norm()))


@pytest.mark.parametrize("shift", [0, -1, 9, 100])
def test_shifts_that_leave_nothing_are_refused(shift):
    with pytest.raises(ValueError, match="1 to 8"):
        study.fit_shift(random_table(10, 4), shift)
