"""What tests of foreign weights share."""

import os
import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

from glassformer.extensions.weight_files import pickle_worker, pickles


class Here:
    """Stands in for `subprocess`: does in this process what the child does, but for the limits.

    The child's start takes seconds, and a fork of a process that holds all tests longer than opening a small file.
    """

    TimeoutExpired, DEVNULL = subprocess.TimeoutExpired, subprocess.DEVNULL

    @staticmethod
    def run(command, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pickle_worker, "_limit", lambda size: None)
            pickle_worker.main(int(command[-2]), Path(command[-1]))
        torch.serialization.clear_safe_globals()


class Forked(Here):
    """The same in a process of its own, within the limits."""

    @staticmethod
    def run(command, **options):
        process = os.fork()
        if not process:
            try:
                pickle_worker.main(int(command[-2]), Path(command[-1]))
            finally:
                os._exit(0)
        os.waitpid(process, 0)


@pytest.fixture(autouse=True)
def opened_here(monkeypatch):
    monkeypatch.setattr(pickles, "subprocess", Here)


@pytest.fixture
def forked(opened_here, monkeypatch):
    monkeypatch.setattr(pickles, "subprocess", Forked)


@pytest.fixture
def started(opened_here, monkeypatch):
    """The child is started as it really is."""
    monkeypatch.setattr(pickles, "subprocess", subprocess)


@pytest.fixture
def opened_once(opened_here):
    """A file that is opened again was kept, as where a server opens it."""
    pickles.keep(4)
    yield
    pickles.keep(0)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5, bias=False), nn.LayerNorm(4))
