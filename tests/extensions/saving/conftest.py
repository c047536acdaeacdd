"""What tests of saved runs share."""

import sys

import pytest

import transformer
from glassformer.extensions.saving import notebook
from tests.glassformer.conftest import opened as opened
from tests.source_code import ROOT


@pytest.fixture(scope="session")
def reverse():
    return transformer.load(ROOT / "checkpoints" / "reverse")


@pytest.fixture
def no_images(monkeypatch):
    """A machine without kaleido, which draws pictures in a browser."""
    monkeypatch.setitem(sys.modules, "kaleido", None)
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
