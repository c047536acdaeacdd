"""Parts of the model are found and called without detours, and are still torch's modules."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.modules import module as torch_module

from transformer.model.module import Module


class Twice(Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(2, 2)

    def forward(self, x, *, times=2):
        return times * self.part(x)


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_of_one_module_and_of_all_are_called(register):
    module, seen, of_all = Twice(), [], []
    ours = getattr(module, register)(lambda *found: seen.append(found))
    every = getattr(torch_module, register.replace("register", "register_module"))(lambda *found: of_all.append(found))
    try:
        module(torch.ones(2))
    finally:
        ours.remove()
        every.remove()
    module(torch.ones(2))
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


def test_hooks_of_the_way_back_are_called():
    module, seen = Twice(), []
    module.register_full_backward_hook(lambda *found: seen.append(found))
    module(torch.ones(2, requires_grad=True), times=3).sum().backward()
    assert len(seen) == 1
