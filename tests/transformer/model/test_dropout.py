"""Dropout zeroes the right share, the same places for the same seed, in training only."""

import numpy as np
import pytest
import torch

from tests.transformer.tiny import tiny_config
from transformer.model.layers import Dropout, Residual, random_bytes


def test_evaluation_changes_nothing():
    x = torch.randn(4, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


@pytest.mark.parametrize("p", [0.1, 0.9])
def test_training_zeroes_the_right_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    x = torch.ones(400, 500)
    dropped = Dropout(p).train()(x)
    share = float((dropped == 0).float().mean())
    assert share == pytest.approx(p, abs=0.006)
    assert float(dropped.mean()) == pytest.approx(1.0, rel=0.05)
    kept = dropped[dropped != 0]
    assert kept.unique().numel() == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_same_seed_drops_the_same_places_whatever_the_type(dtype):
    x, dropout = torch.ones(40, 25), Dropout(0.3).train()
    torch.manual_seed(5)
    expected = dropout(x) == 0
    torch.manual_seed(5)
    dropped = dropout(x.to(dtype))
    assert dropped.dtype == dtype
    assert torch.equal(dropped == 0, expected)
    kept = float(dropped[~expected][0])
    assert kept == pytest.approx(256 / (256 - 77), rel=0.01)  # 0.3 is 77 of 256 bytes


def test_a_transposed_input_its_type_and_gradients_are_kept():
    x = torch.randn(7, 3, dtype=torch.bfloat16, requires_grad=True)
    dropped = Dropout(0.5).train()(x.T)
    assert (dropped.shape, dropped.dtype) == ((3, 7), torch.bfloat16)
    assert ((dropped == 0) | (dropped == 2 * x.T)).all()
    dropped.sum().backward()
    assert torch.equal(x.grad.T != 0, dropped != 0)


def test_dropout_acts_on_a_sub_layers_output_only():
    residual = Residual(tiny_config(dropout=0.5)).train()
    x = torch.randn(4, 50, 12)
    torch.manual_seed(0)
    added = residual(x, torch.ones_like) - x
    assert set(added.round(decimals=4).unique().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("n", [0, 7, 1000])
def test_bytes_are_uniform(n):
    torch.manual_seed(1)
    found = random_bytes(n, torch.device("cpu"))
    assert found.shape == (n,)
    assert found.dtype == torch.uint8
    many = np.bincount(random_bytes(256_000, torch.device("cpu")).numpy(), minlength=256)
    assert ((many - 1000.0) ** 2 / 1000).sum() < 400  # chi squared of 255 degrees of freedom: 400 is far out
