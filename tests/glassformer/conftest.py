"""Checkpoints for the tests of the app."""

from pathlib import Path

import pytest

from tests.pages.conftest import packages_looked_through_once as packages_looked_through_once
from transformer.checkpoint.load import Checkpoint, load

REVERSE = Path(__file__).parents[2] / "checkpoints" / "reverse"


@pytest.fixture(scope="session")
def reverse() -> Checkpoint:
    """The shipped model that writes letters backwards: its outputs are known."""
    return load(REVERSE)


@pytest.fixture(scope="session")
def tiny(checkpoint_folder: Path) -> Checkpoint:
    """An untrained model with two vocabularies."""
    return load(checkpoint_folder)
