"""Parts of the model are called without detours and multiply on all cores, and are and give what torch's do."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules import module as torch_module

from transformer.model import module as module
from transformer.model.module import Linear, Module, linear


class Twice(Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)

    def forward(self, x, *, times=2):
        return times * self.part(x)


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward"])
def test_hooks_of_one_module_and_of_all_are_called(kind):
    module, seen, of_all = Twice(), [], []
    ours = getattr(module, f"register_{kind}_hook")(lambda *found: seen.append(found))
    every = getattr(torch_module, f"register_module_{kind}_hook")(lambda *found: of_all.append(found))
    try:
        module(torch.ones(2, requires_grad=True), times=3).sum().backward()
    finally:
        ours.remove()
        every.remove()
    module(torch.ones(2, requires_grad=True)).sum().backward()
    assert (len(seen), len(of_all)) == (1, 2)


def test_a_part_can_be_replaced_and_removed():
    module = Twice()
    module.part = nn.Identity()
    assert module(torch.ones(2)).tolist() == [2.0, 2.0]
    del module.part
    assert not hasattr(module, "part")
    assert not list(module.children())
    module.part = None
    assert module.part is None


def test_a_copy_finds_its_own_parts():
    copied = copy.deepcopy(Twice())
    assert copied.part is next(copied.children())
    with torch.no_grad():
        copied.part.weight.zero_()
        copied.part.bias.fill_(1.0)
        assert copied(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """As many threads as the function is to see, and no matrix too small for it."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: request.param)
    monkeypatch.setattr(module, "SMALLEST", 0)
    return request.param


@pytest.mark.parametrize("shape", [(5,), (1, 1, 5), (2, 1, 5)])
@pytest.mark.parametrize("n_outputs", [12, 7])
@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_it_is_torchs_own(threads, shape, n_outputs, by_columns, with_bias):
    torch.manual_seed(0)
    x, weight = torch.randn(shape, dtype=torch.float64), torch.randn(n_outputs, 5, dtype=torch.float64)
    bias = torch.randn(n_outputs, dtype=torch.float64) if with_bias else None
    weight = weight.t().contiguous().t() if by_columns else weight
    found, expected = linear(x, weight, bias), F.linear(x, weight, bias)
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


def test_a_single_row_is_cut_and_several_are_not(threads, monkeypatch):
    cut = []
    bmm = torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: cut.append(a.shape[0]) or bmm(a, b))
    weight = torch.randn(12, 5)
    linear(torch.randn(2, 5), weight)
    assert cut == []
    linear(torch.randn(1, 5), weight)
    assert cut == ([] if threads == 1 else [threads])


def test_it_can_be_differentiated(threads):
    layer = Linear(5, 12).double()
    x = torch.randn(1, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda *given: layer(given[0]), (x, *layer.parameters()))
