"""What is said of parameters is what numpy and torch say of whole tensors in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from transformer.analysis import parameters as module
from transformer.analysis.parameters import Parameter, histogram, measured, spectrum, statistics, work_of

FLOATS = st.floats(allow_nan=True, allow_infinity=True, width=32)


def drawn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    """Of a tensor of a few numbers there are several slices, too, the last of them a short one."""
    monkeypatch.setattr(module, "SLICE", 7)


@pytest.mark.parametrize("shape", [(), (7,), (30,), (2, 3, 4)])
def test_the_numbers_are_those_of_numpy_over_the_whole_tensor(shape):
    for dtype in (torch.float32, torch.bfloat16):
        values = drawn(*shape, dtype=dtype) * 3 + 100
        found, held = measured(Parameter("w", (), values)), values.double().numpy()
        assert (found.shape, found.size) == (shape, held.size)
        assert found.dtype == str(dtype).removeprefix("torch.")
        assert [found.mean, found.deviation] == pytest.approx([held.mean(), held.std()], rel=1e-12, abs=1e-12)
    far = torch.tensor([1e9, 1e9 + 1, 1e9 + 2] * 9, dtype=torch.float64)  # its digits are not lost
    assert measured(Parameter("w", (), far)).deviation == pytest.approx(math.sqrt(2 / 3), rel=1e-7)


@given(st.lists(FLOATS, max_size=40) | st.builds(lambda one, n: [one] * n, FLOATS, st.integers(0, 9)))
def test_what_is_not_finite_is_counted_and_left_out(numbers):
    found, held = measured(Parameter("w", (), torch.tensor(numbers))), np.array(numbers, np.float64)
    finite = held[np.isfinite(held)]
    assert (found.nan, found.infinite, found.zeros) == (np.isnan(held).sum(), np.isinf(held).sum(), (held == 0).sum())
    assert found.is_finite == (len(finite) == len(held))
    assert found.is_constant == (found.is_finite and len(held) > 1 and np.ptp(held) == 0)
    if len(finite):
        assert (found.smallest, found.largest) == (finite.min(), finite.max())
        room = 1e-12 * np.abs(finite).max()
        assert [found.mean, found.deviation] == pytest.approx([finite.mean(), finite.std()], rel=1e-9, abs=room)
    else:
        assert all(map(math.isnan, (found.mean, found.deviation, found.smallest, found.largest)))
    assert math.isnan(found.zero_share) if not numbers else found.zero_share == found.zeros / len(numbers)


def test_a_shared_tensor_is_listed_once_with_its_other_names():
    first, second = nn.Linear(3, 4), nn.Linear(3, 4)
    second.weight = first.weight
    found = statistics(nn.ModuleDict({"a": first, "b": second}))
    assert [(one.name, one.also) for one in found] == [("a.weight", ("b.weight",)), ("a.bias", ()), ("b.bias", ())]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_a_histogram_is_that_of_numpy_also_of_a_difference(dtype):
    a, b = drawn(30, 4, dtype=dtype), drawn(4, 30, seed=1, dtype=dtype).T  # one lies by rows, the other by columns
    for found, values in ((histogram(a, n_bins=11), a), (histogram(b, n_bins=11, minus=a), b.double() - a.double())):
        counts, edges = np.histogram(values.double().numpy(), 11)
        np.testing.assert_allclose(found.edges, edges, rtol=1e-12)
        assert found.counts.tolist() == counts.tolist()


def test_a_histogram_counts_what_it_leaves_out_and_a_constant_is_in_one_bin_of_edges_that_rise():
    found = histogram(torch.tensor([1.0, 2.0, math.nan, math.inf, -math.inf, math.nan, 2.0, 1.5, 1.0]), n_bins=4)
    assert (found.counts.tolist(), found.nan, found.infinite) == ([2, 0, 1, 2], 2, 2)
    assert not len(histogram(torch.full((3,), math.nan)).counts)
    for value in (0.0, -1e-30, 3e38):
        found = histogram(torch.full((9,), value))
        assert sorted(found.counts.tolist())[-2:] == [0, 9]
        assert (np.diff(found.edges) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("shape", [(1, 9), (30, 4), (4, 30), (12, 12)])
@pytest.mark.parametrize("small", [2**20, 0])
def test_singular_values_are_those_of_torch_in_float64(monkeypatch, shape, dtype, small):
    monkeypatch.setattr(module, "SMALL", small)  # 0: each is reduced to a triangle first
    monkeypatch.setattr(module, "SLICE", 8)
    matrix = drawn(*shape, dtype=dtype)
    if shape[0] > shape[1]:  # it lies by columns, as those of a loaded model do
        matrix = matrix.T.contiguous().T
    found, expected = spectrum(matrix), torch.linalg.svdvals(matrix.double()).numpy()
    np.testing.assert_allclose(found.values, expected, rtol=1e-12)
    assert (found.largest, found.ratio) == pytest.approx((expected[0], expected[0] / expected[-1]), rel=1e-9)
    shares = expected / expected.sum()
    assert found.effective_rank == pytest.approx(math.exp(-(shares * np.log(shares)).sum()))


def test_small_singular_values_survive_the_slices_and_what_is_no_matrix_of_numbers_has_none(monkeypatch):
    """The product with its own transpose would lose all below the root of the precision."""
    assert math.isnan(spectrum(torch.zeros(3, 4)).ratio)
    assert spectrum(torch.diag(torch.tensor([1.0, 0.0]))).ratio == math.inf
    for values in (torch.zeros(3), torch.zeros(0, 3), torch.zeros(2, 2, 2), torch.tensor([[1.0, math.nan]])):
        assert spectrum(values) is None
    assert (work_of((3, 5)), work_of((5,))) == (3 * (15 + 27), 0)
    monkeypatch.setattr(module, "SMALL", 0)
    values = torch.tensor([1.0, 1e-3, 1e-9, 1e-12], dtype=torch.float64)
    matrix = torch.linalg.qr(drawn(60, 60).double()).Q[:, :4] * values
    np.testing.assert_allclose(spectrum(matrix).values, values, rtol=1e-3)
