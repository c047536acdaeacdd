"""Models of all sources can be chosen in one order, and what a source has opened is run again by it."""

import pytest

from glassformer.runs import loading, sources
from glassformer.runs.sources import Source
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import load
from transformer.errors import QueryError


def entry(name, folder, holds="model"):
    return Entry(name, folder, None, name, folder, holds=holds)


@pytest.fixture
def have(monkeypatch):
    """Have only these sources."""
    return lambda *found: monkeypatch.setattr(sources, "provided", lambda name: found)


def test_folders_come_first_then_what_sources_open_of_the_others_then_what_is_the_sessions_own(
    have, monkeypatch, tmp_path
):
    def kind(holds):
        source = Source()
        source.holds, source.own = holds, lambda: {f"own {holds}": entry(f"own {holds}", tmp_path)}
        return source

    listed = [entry("a", tmp_path, "y"), entry("b", tmp_path, "x"), entry("c", tmp_path), entry("d", tmp_path, "z")]
    monkeypatch.setattr(loading, "entries", lambda: tuple(listed))
    have(kind("x"), kind("y"))
    assert list(loading.choosable()) == ["c", "b", "a", "own x", "own y"]  # nobody opens a "z"
    have()
    assert list(loading.choosable()) == ["c"]


def test_what_a_source_has_opened_is_run_again_by_it(have, checkpoint_folder):
    checkpoint = load(checkpoint_folder)

    class Opened(Source):
        def opened(self, content_hash):
            return checkpoint if content_hash == checkpoint.content_hash else None

    query = checkpoint.query("3 1 2")
    have(Opened())
    assert loading.trace_again("gone", query) == loading.run(checkpoint, query)
    have(Source())
    with pytest.raises(QueryError, match="no longer available"):
        loading.trace_again("gone", query)
