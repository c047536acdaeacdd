"""A healthy checkpoint that is small and has learnt something."""

from pathlib import Path

import pytest

import transformer


@pytest.fixture(scope="package")
def reverse():
    """The shipped model that reverses words."""
    return transformer.load(Path(__file__).parents[4] / "checkpoints" / "reverse")
