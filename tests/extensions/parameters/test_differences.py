"""Parameters of two models are paired by name and shape, and their difference is that of numpy in float64."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from glassformer.extensions.parameters.differences import difference, paired
from tests.transformer.analysis.test_parameters import drawn
from tests.transformer.analysis.test_parameters import small_slices as small_slices
from transformer.analysis.parameters import parameters


@pytest.mark.parametrize("shape", [(), (9,), (5, 6)])
def test_a_difference_is_that_of_numpy(shape):
    a, b = drawn(*shape), drawn(*shape, seed=1, dtype=torch.float16)
    found = difference("w", a, b)
    x, y = a.double().numpy().ravel(), b.double().numpy().ravel()
    norm = np.linalg.norm
    assert [found.largest, found.mean] == pytest.approx([abs(y - x).max(), abs(y - x).mean()])
    assert [found.relative, found.cosine] == pytest.approx([norm(y - x) / norm(x), x @ y / norm(x) / norm(y)])
    assert (found.shape, found.left_out) == (shape, 0)


def test_of_zeros_and_of_nothing():
    grown = difference("w", torch.zeros(9), torch.ones(9))
    assert grown.relative == math.inf
    assert math.isnan(grown.cosine)
    assert difference("w", torch.zeros(9), torch.zeros(9)).relative == 0
    nothing = difference("w", torch.full((9,), math.nan), torch.ones(9))
    assert nothing.left_out == 9
    assert all(map(math.isnan, (nothing.largest, nothing.mean, nothing.relative, nothing.cosine)))
    lies = drawn(4, 5).T  # in another order in memory
    assert difference("w", lies, lies.contiguous()).largest == difference("w", lies.contiguous(), lies).largest == 0


def test_places_that_are_not_finite_are_left_out_of_a_difference():
    a, b = drawn(30), drawn(30, seed=1)
    kept = [place for place in range(30) if place not in (3, 20)]
    expected = difference("w", a[kept], b[kept])
    a[3], b[20] = math.nan, math.inf
    found = difference("w", a, b)
    assert found.left_out == 2
    assert [found.relative, found.cosine] == pytest.approx([expected.relative, expected.cosine])


def test_tensors_of_one_name_and_one_shape_are_paired():
    first = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.Linear(3, 3), "gone": nn.Linear(2, 2, bias=False)})
    second = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.Linear(3, 5), "new": nn.Linear(1, 1, bias=False)})
    found = paired(parameters(first), parameters(second))
    assert [(one.name, other.name) for one, other in found.pairs] == [("a.weight", "a.weight"), ("a.bias", "a.bias")]
    assert found.reshaped == ("b.weight", "b.bias")
    assert (found.only_first, found.only_second) == (("gone.weight",), ("new.weight",))
    assert found.unmatched == ("b.weight", "b.bias", "gone.weight", "new.weight")


def test_a_tied_tensor_finds_the_two_that_are_not():
    tied, untied = (nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)}) for _ in range(2))
    tied["b"].weight = tied["a"].weight
    found = paired(parameters(tied), parameters(untied))
    assert [one.name for one, _ in found.pairs] == ["a.weight", "a.bias", "b.bias"]
    assert found.only_second == ("b.weight",)
