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
    with ours, every:
        module(torch.ones(2, requires_grad=True), times=3).sum().backward()
    module(torch.ones(2, requires_grad=True)).sum().backward()
    assert (len(seen), len(of_all)) == (1, 2)


def test_a_part_can_be_replaced_and_removed_and_a_copy_finds_its_own():
    module = Twice()
    copied = copy.deepcopy(module)
    assert copied.part is next(copied.children()) is not module.part
    module.part = nn.Identity()
    assert module(torch.ones(2)).tolist() == [2.0, 2.0]
    del module.part
    assert not hasattr(module, "part")
    assert not list(module.children())
    module.part = None
    assert module.part is None


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(5,), (1, 1, 5), (2, 1, 5)])
@pytest.mark.parametrize("n_outputs", [12, 7])
def test_a_linear_map_is_torchs_own_and_a_single_row_is_cut(n_threads, shape, n_outputs, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)
    monkeypatch.setattr(module, "SMALLEST", 0)  # no matrix is too small
    cut, bmm = [], torch.bmm
    monkeypatch.setattr(torch, "bmm", lambda a, b: cut.append(a.shape[0]) or bmm(a, b))
    x, rows = torch.randn(shape, dtype=torch.float64), torch.randn(n_outputs, 5, dtype=torch.float64)
    for weight in (rows, rows.t().contiguous().t()):  # by rows, by columns
        for bias in (None, torch.randn(n_outputs, dtype=torch.float64)):
            found, expected = linear(x, weight, bias), F.linear(x, weight, bias)
            assert found.shape == expected.shape
            assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    assert cut == ([n_threads] * 2 if n_threads > 1 and x.numel() == 5 and n_outputs % n_threads == 0 else [])
    layer, x = Linear(5, n_outputs).double(), x.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda *given: layer(given[0]), (x, *layer.parameters()))
