"""A healthy checkpoint that is small and has learnt something, and searches for a wiring that are short."""

from functools import partial
from pathlib import Path

import pytest
import torch

import transformer
from glassformer.extensions.doctor.library import report, wiring_tests
from glassformer.extensions.wirings import search


@pytest.fixture(scope="package")
def reverse():
    """The shipped model that reverses words."""
    return transformer.load(Path(__file__).parents[3] / "checkpoints" / "reverse")


@pytest.fixture(autouse=True)
def short_searches(request, monkeypatch):
    """A search ends at one mistake, but in deep tests: two at once are those of `tests/extensions/wirings`."""
    torch.set_num_threads(1)
    if request.node.get_closest_marker("deep") is None:
        monkeypatch.setattr(wiring_tests, "WiringSearch", partial(search.WiringSearch, most_mistakes=1))


@pytest.fixture
def few_wirings(monkeypatch):
    """A search among every tenth wiring: which one is named is in `tests/extensions/wirings` and in the table."""
    every = search.catalogue
    monkeypatch.setattr(search, "catalogue", lambda config: [
        one for n, one in enumerate(every(config)) if n % 10 == 0 or one.names == ("end-never-learnt",)
    ])  # fmt: skip


@pytest.fixture
def few_tests(monkeypatch, few_wirings):
    """Only the first tests are made: all of them are made in the tests of the doctor's library."""
    names = ("finite", "constant", "positions", "wiring", "loss")
    monkeypatch.setattr(report, "TESTS", tuple(test for test in report.TESTS if test.name in names))
