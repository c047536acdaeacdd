"""Sentences travel as data between processes, and what arrives is trusted as little as a file."""

import json

import pytest

from glassformer.extensions.uploads.library.upload_worker import as_data, sentence
from transformer.i18n import joined, said, say, say_n

NESTED = say(
    "{label}: {problem}; {names}.",
    label="a.pt",
    problem=say_n("{n:,} byte is missing", "{n:,} bytes are missing", 1200),
    names=joined(", ", ["x", say("none")]),
)


@pytest.mark.parametrize(
    "one",
    [say("Plain."), NESTED, say("{share:.1%} and {{braces}}", share=0.25), say("{found:.1f}", found=float("nan"))],
)
@pytest.mark.parametrize("language", ["en", "qps"])
def test_a_sentence_arrives_as_it_was_said(one, language):
    there = sentence(json.loads(json.dumps(as_data(one))))
    assert said(there, language) == said(one, language)


@pytest.mark.parametrize(
    "data",
    [
        None,
        7,
        "others only a text",
        {},
        {"say": ["{x:>999999999}", None], "values": {"x": 1}},
        {"say": ["{x.__class__}", None], "values": {"x": 1}},
        {"say": ["{x[0]}", None], "values": {"x": "ab"}},
        {"say": ["{missing}", None], "values": {}},
        {"say": ["{n}", "{n}"], "values": {}},
        {"say": ["x" * 10_000, None], "values": {}},
        {"say": ["{x}", None], "values": {"x": "y" * 10_000}},
        {"say": 3, "values": 4},
        {"joined": ", ", "parts": 5},
    ],
)
def test_what_is_no_sentence_of_ours(data):
    assert sentence(data) == "The files cannot be read."


def test_one_that_is_nested_without_end():
    data = {"say": ["end", None], "values": {}}
    for _ in range(100):
        data = {"say": ["{x}", None], "values": {"x": data}}
    assert sentence(data) == "The files cannot be read."
