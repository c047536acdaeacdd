"""What is around a page is drawn in the order of the extensions, and not after a page that stopped."""

from contextlib import contextmanager

import pytest

from glassformer.shared import page_blocks
from glassformer.shared.page_blocks import PageBlocks, around_page


class Around(PageBlocks):
    def __init__(self, name, told):
        self._name, self._told = name, told

    @contextmanager
    def around_page(self, page):
        self._told.append(f"{self._name} before {page}")
        yield
        self._told.append(f"{self._name} after")


@pytest.fixture
def told(monkeypatch):
    found = []
    monkeypatch.setattr(page_blocks, "page_blocks", lambda: (Around("one", found), PageBlocks(), Around("two", found)))
    return found


def test_a_page_is_within_all(told):
    with around_page("step"):
        told.append("page")
    assert told == ["one before step", "two before step", "page", "two after", "one after"]


def test_after_a_page_that_stops_nothing_is_drawn(told):
    with pytest.raises(KeyError), around_page("step"):
        raise KeyError
    assert told == ["one before step", "two before step"]
