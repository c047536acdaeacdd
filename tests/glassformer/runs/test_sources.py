"""Models of all sources are chosen in one order, run by their source, and offered a sentence that they can read."""

from dataclasses import replace

import pytest

from glassformer.runs import loading, sources
from glassformer.runs.open_run import suggested
from glassformer.runs.sources import Source
from tests.test_checkpoints import FOLDER
from transformer.checkpoint.listing import Entry
from transformer.checkpoint.load import load
from transformer.errors import QueryError
from transformer.text.tokenizer import RawIds


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


POOL = {"zh-en": "我喜欢喝咖啡。", "en-fr": "The cat sleeps on the table.", "reverse": "glass"}


def without_examples(name, **changes):
    checkpoint = load(FOLDER / name)
    return replace(checkpoint, card=replace(checkpoint.card, examples=()), **changes)


@pytest.mark.parametrize("name", POOL)
def test_the_example_is_taken_that_the_tokenizer_reads_best(name):
    for others in (POOL.values(), reversed(POOL.values())):
        assert suggested(without_examples(name), list(others)) == POOL[name]


def test_its_own_example_comes_first():
    checkpoint = load(FOLDER / "reverse")
    assert suggested(checkpoint, POOL.values()) == checkpoint.card.first_example()


def test_a_vocabulary_that_reads_none_of_them_and_one_of_numbers_alone_are_offered_pieces_of_their_own():
    checkpoint = without_examples("reverse")
    text = suggested(checkpoint, ["我喜欢喝咖啡。"])
    ids = checkpoint.src_tokenizer.encode(text).ids
    assert ids
    assert not any(map(checkpoint.src_tokenizer.is_special, ids))
    numbers = without_examples("reverse", src_tokenizer=RawIds(30, {0, 1, 2, 4}))
    assert suggested(numbers, POOL.values()) == "3 5 6 7"
