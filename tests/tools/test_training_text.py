"""What is added to a corpus: what people type first, and nothing of what it is scored on."""

import hashlib

from tools import training_text

CORPUS = [(f"I saw {n} cats today.", f"J'ai vu {n} chats aujourd'hui.") for n in range(200)]


def test_it_begins_with_the_corpus_and_is_the_same_each_time():
    text = training_text.training_text(CORPUS)
    assert text[: len(CORPUS)] == CORPUS
    assert text == training_text.training_text(CORPUS)


def test_nothing_that_is_added_is_scored():
    scored = set(training_text._lines("first_hundred.txt"))
    added = {source for source, _ in training_text.training_text(CORPUS)[len(CORPUS) :]}
    assert len(scored) == 100
    assert not scored & added


def test_sources_are_as_people_type_them():
    text = training_text.training_text(CORPUS)[len(CORPUS) :]
    assert any(source == source.lower() and source[-1].isalnum() for source, _ in text)
    assert all(source and target for source, target in text)


def test_the_phrases_are_pairs_and_each_stands_once():
    pairs = [*training_text._pairs("phrases.tsv"), *training_text._pairs("templates.tsv")]
    assert all(source.strip() == source and target.strip() == target for source, target in pairs)
    sources = [source for source, _ in pairs]
    assert sorted({s for s in sources if sources.count(s) > 1}) == []


def test_the_text_that_was_learned():
    """Its additions do not depend on the machine: the same digest for this corpus everywhere."""
    lines = "".join(f"{source}\t{target}\n" for source, target in training_text.training_text(CORPUS))
    assert (
        hashlib.sha256(lines.encode()).hexdigest()
        == "d4ed503ff8c5911631e5f7e800e1d922ffc78f30251af89a99aaca04b7583146"
    )
