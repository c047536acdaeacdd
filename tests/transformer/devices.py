"""The same checkpoints on the processor and on a stand-in for another device; results compared to the last bit."""

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest
import torch

from tests.transformer.featured import FEATURED, featured, filling
from tests.transformer.stand_in import DEVICE
from transformer.__main__ import main
from transformer.checkpoint.load import load

TEXT, OTHER = "ba lo mi ta", "mi ta ba"


@pytest.fixture(scope="module")
def of_name(tmp_path_factory, checkpoint_folder):
    """Makes one checkpoint on the processor and on the other device, by the model's name."""

    @cache
    def made(name):
        folder = tmp_path_factory.mktemp("devices")
        if name == "two vocabularies":
            here = load(checkpoint_folder)
        else:
            here = filling(folder) if name == "filling" else featured(name, folder)
        return here, load(here.folder, device=DEVICE)

    return made


DAILY = ("two vocabularies", "filling", "relative", "windows")  # the others have no tensors of other kinds
RARE = [pytest.param(name, marks=pytest.mark.deep) for name in FEATURED if name not in DAILY]


@pytest.fixture(params=[*DAILY, *RARE])
def pair(request, of_name):
    """The same of every model."""
    return of_name(request.param)


def plain(value):
    """A result as plain values, arrays bit by bit; how long it took is left out."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if isinstance(value, torch.Tensor):
        return plain(value.numpy())
    if isinstance(value, BaseException):
        return type(value), str(value)
    if dataclasses.is_dataclass(value):
        return [
            (one.name, plain(getattr(value, one.name))) for one in dataclasses.fields(value) if one.name != "seconds"
        ]
    if isinstance(value, Mapping):
        return [(key, plain(one)) for key, one in value.items()]
    return [*map(plain, value)] if isinstance(value, list | tuple) else value


def same(pair, work):
    """Some work gives the same on both devices."""
    here, there = map(work, pair)
    assert plain(there) == plain(here)


@pytest.fixture
def refused_without_cuda(checkpoint_folder, monkeypatch, capsys):
    """A function that says whether a command asks for the device that its option names, where there is none."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def refused(command, *arguments):
        assert main([command, str(checkpoint_folder), *arguments, "--device", "cuda"]) == 2
        return "torch finds no CUDA device here" in capsys.readouterr().err

    return refused
