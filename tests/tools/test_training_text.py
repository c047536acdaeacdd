"""What people type first is added to a corpus, and nothing of what it is scored on."""

import hashlib

import pytest

from tools import training_text

CORPUS = {
    "en-fr": [(f"I saw {n} cats today.", f"J'ai vu {n} chats aujourd'hui.") for n in range(200)],
    "zh-en": [(f"我今天看见{n}只猫。", f"I saw {n} cats today.") for n in range(200)],
}
DIGESTS = {
    "en-fr": "148453161fedbd71e56c09f333538c56a3b070706ee26ff3a708db888ad14373",
    "zh-en": "1438a999f2b4c8353108447e7ac0977180cf229feeade48f2411a1f28ee943ce",
}


@pytest.fixture(params=CORPUS)
def languages(request):
    return request.param


def added(languages):
    return training_text.training_text(languages, CORPUS[languages])[len(CORPUS[languages]) :]


def test_it_begins_with_the_corpus_and_what_is_added_is_not_scored_and_is_the_same_everywhere(languages):
    text, more = training_text.training_text(languages, CORPUS[languages]), added(languages)
    assert text == [*CORPUS[languages], *more]
    hundred = training_text.FIRST_WORDS / languages / "first_hundred.txt"
    scored = set(hundred.read_text(encoding="utf-8").splitlines())
    assert len(scored) == 100
    assert not scored & {source for source, _ in more}
    assert any(source == source.lower() and source[-1].isalnum() for source, _ in more)  # as people type
    assert all(source and target for source, target in more)
    lines = "".join(f"{source}\t{target}\n" for source, target in more)
    assert hashlib.sha256(lines.encode()).hexdigest() == DIGESTS[languages]


def test_made_names_are_spelled():
    names = {source: target for source, target in added("zh-en") if source.startswith("我叫")}
    assert any(target.startswith("My name is ") and source[2:-1] not in names for source, target in names.items())


def test_the_phrases_are_pairs_and_each_stands_once(languages):
    folder = training_text.FIRST_WORDS / languages
    pairs = [pair for name in ("phrases", "templates") for pair in training_text._pairs(folder / f"{name}.tsv")]
    assert all(source.strip() == source and target.strip() == target for source, target in pairs)
    sources = [source for source, _ in pairs]
    assert len({*sources}) == len(sources)
