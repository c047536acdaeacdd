"""One word a thing, and one way to count it: what the glossary calls things, every sentence does."""

import re
from functools import cache

import pytest

from tools.catalogues import collected

# Words that are not used, and what the glossary has for them.
INSTEAD = {
    r"start (piece|token|symbol)s?": "start mark",
    r"(end|eos) (piece|token|symbol)s?": "end mark",
    r"sub-?words?|word-?pieces?": "piece",
    r"feed-forward layers?|MLP": "feed-forward network",
    r"hidden states?": "stream, or vector",
    r"(un)?embeddings? matri(x|ces)": "embedding table",
    r"untouched run": "unchanged run",
    r"(encoder-decoder|source) attention": "cross-attention",
    r"time ?steps?": "decoding step",
    r"gold (piece|token)s?": "right piece",
}
# A token's number counts from 1 on every page; the p of a formula counts from 0, and is always called p.
PLACED = re.compile(r"\bposition \{", re.IGNORECASE)


@cache
def sentences():
    found = [message for message in collected() if message.context != "glossary"]
    forms = [[message.id] if isinstance(message.id, str) else message.id for message in found]
    return [form for several in forms for form in several if form]


@pytest.mark.parametrize(("word", "instead"), INSTEAD.items())
def test_a_thing_has_one_word(word, instead):
    found = [text for text in sentences() if re.search(rf"\b(?:{word})\b", text, flags=re.IGNORECASE)]
    assert not found, f"say {instead}:\n" + "\n".join(found)


def test_a_position_is_the_number_of_a_token_or_is_called_p():
    found = [text for text in sentences() if PLACED.search(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", ["What {piece} at position {place} starts from", "Position {n} reads", "position {p}"])
def test_another_way_to_count_is_found(text):
    assert PLACED.search(text)
