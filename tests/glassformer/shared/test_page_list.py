"""The list of pages, and what extensions add to it."""

from pathlib import Path

from glassformer.shared import page_blocks
from glassformer.shared.page_blocks import PageEntry, by_section
from transformer.extensions import provided

ADDED = [entry for pages in provided("pages") for entry in pages]


def test_the_script_of_each_extensions_page_is_there():
    assert [entry.script for entry in ADDED if not entry.script.is_file()] == []


def test_each_page_has_a_place_of_its_own():
    assert len({entry.place for entry in ADDED}) == len(ADDED)


def test_pages_of_extensions_stand_where_their_places_say(monkeypatch):
    monkeypatch.setattr(PageEntry, "page", lambda entry: entry.script.stem)
    monkeypatch.setattr(page_blocks, "provided", lambda _: ((PageEntry(2, Path("b.py"), "B", "Later"),),))
    own = [PageEntry(3, Path("c.py"), "C", "Later"), PageEntry(1, Path("a.py"), "A")]
    assert by_section(own) == {"": ["a"], "Later": ["b", "c"]}
    monkeypatch.setattr(page_blocks, "provided", lambda _: ())
    assert by_section(own) == {"": ["a"], "Later": ["c"]}
