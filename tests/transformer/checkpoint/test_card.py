"""Every field of a card is read or left out with a warning, and no card is an error."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.checkpoint.card import MAX_TEXT, Card, read_card
from transformer.i18n import said

FULL = {
    "title": "Tiny",
    "description": "Does little.",
    "source_code": "",
    "examples": ["ba lo", "mi ta"],
    "scores": [{"file": "dev.tsv", "bleu": 12.5, "heads": {"reads": [[0.4, 0.5]]}}],
    "training": {"command": "python -m transformer train", "epochs": 2},
    "parameters": 1234,
    "sha256": {"config.json": "00ff"},
    "said": {"zh": {"title": "小模型 {x}"}},
    "colour": "blue",
}


def test_every_field_is_read_in_each_language_and_an_unknown_one_kept():
    card, warnings = read_card(json.dumps(FULL).encode())
    assert (warnings, card.other) == ((), {"colour": "blue"})
    for name in FULL.keys() - {"colour"}:
        assert getattr(card, name) == (tuple(FULL[name]) if isinstance(FULL[name], list) else FULL[name])
    assert (said(card.title, "zh"), said(card.title, "de")) == ("小模型 {x}", "Tiny")  # a brace is a brace
    assert said(card.description, "zh") == "Does little."
    assert read_card(b'{"said": {"zh": {"title": "x"}}}')[0].title == ""
    assert read_card(b"{}") == (Card(), ())
    for content in (b"[]", b"\xff", b"[" * 999_999):
        card, (warning,) = read_card(content)
        assert card == Card()
        assert warning.startswith("card.json was ignored: ")


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("title", 3, "a string"),
        ("description", "x" * (MAX_TEXT + 1), "at most 4,000 characters"),
        ("examples", ["ba", 3], "a string"),
        ("examples", ["ba"] * 101, "at most 100"),
        ("scores", [3], "an object"),
        ("training", [], "an object"),
        ("parameters", True, "a whole number"),
        ("sha256", {"config.json": 3}, "a string"),
        ("said", {"zh": {"title": 3}}, "a string"),
    ],
)
def test_a_field_of_the_wrong_type_is_left_out_with_a_warning(field, value, expected):
    card, (warning,) = read_card(json.dumps(FULL | {field: value}).encode())
    assert (getattr(card, field), card.other) == (getattr(Card(), field), {"colour": "blue"})
    assert field in warning
    assert expected in warning
    assert len(warning) < 250


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from(sorted(FULL)) | st.text(max_size=4), JSON))
def test_no_card_raises(record):
    card, warnings = read_card(json.dumps(record).encode())
    assert isinstance(card, Card)
    assert all(isinstance(warning, str) for warning in warnings)


def test_label_smoothing_is_what_the_card_says():
    for training, smoothing in (
        ({"smoothing": 0.1}, 0.1),
        ({"command": "python -m transformer train --smoothing 0.2 --seed 1"}, 0.2),
        ({"command": "train --smoothing=.15"}, 0.15),
        ({"smoothing": 0.1, "command": "train --smoothing 0.2"}, 0.1),
        ({"command": "train --smoothing much"}, None),
        ({"smoothing": 1e9}, None),
        ({}, None),
    ):
        assert Card(training=training).label_smoothing() == smoothing
