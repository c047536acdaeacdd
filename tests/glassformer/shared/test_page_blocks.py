"""Pages stand where their places say, and what extensions draw around a page comes in order, or not at all."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from glassformer.shared import page_blocks
from glassformer.shared.page_blocks import PageBlocks, PageEntry, around_page, by_section


class Around(PageBlocks):
    def __init__(self, name, told):
        self._name, self._told = name, told

    @contextmanager
    def around_page(self, page):
        self._told.append(f"{self._name} before {page}")
        yield
        self._told.append(f"{self._name} after")


def test_a_page_is_within_all_and_after_one_that_stops_nothing_is_drawn(monkeypatch):
    told = []
    monkeypatch.setattr(page_blocks, "page_blocks", lambda: (Around("one", told), PageBlocks(), Around("two", told)))
    with around_page("step"):
        told.append("page")
    before = ["one before step", "two before step"]
    assert told == [*before, "page", "two after", "one after"]
    told.clear()
    with pytest.raises(KeyError), around_page("step"):
        raise KeyError
    assert told == before


def test_pages_of_extensions_stand_where_their_places_say(monkeypatch):
    monkeypatch.setattr(PageEntry, "page", lambda entry: entry.script.stem)
    monkeypatch.setattr(page_blocks, "provided", lambda _: ((PageEntry(2, Path("b.py"), "B", "Later"),),))
    own = [PageEntry(3, Path("c.py"), "C", "Later"), PageEntry(1, Path("a.py"), "A")]
    assert by_section(own) == {"A": ["a"], "Later": ["b", "c"]}
    monkeypatch.setattr(page_blocks, "provided", lambda _: ())
    assert by_section(own) == {"A": ["a"], "Later": ["c"]}
