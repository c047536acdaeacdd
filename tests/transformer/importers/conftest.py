"""What tests of foreign weights share."""

import os
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from transformer.importers import pickle_child, pickles


class Forked:
    """Stands in for `subprocess` where a test does not need the real start of the child: it takes seconds."""

    TimeoutExpired, DEVNULL = subprocess.TimeoutExpired, subprocess.DEVNULL

    @staticmethod
    def run(command, **options):
        process = os.fork()
        if not process:
            try:
                pickle_child.main(int(command[-2]), Path(command[-1]))
            finally:
                os._exit(0)
        os.waitpid(process, 0)


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    monkeypatch.setattr(pickles, "subprocess", Forked)


@pytest.fixture
def started(forked, monkeypatch):
    """The child is started as it really is."""
    monkeypatch.setattr(pickles, "subprocess", subprocess)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5, bias=False), nn.LayerNorm(4))
