"""What `train --card` takes is what loading keeps."""

import json

import pytest

from glassformer.extensions.training.library.card_scores import read_card
from transformer.checkpoint import card
from transformer.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write_file(content):
        path = tmp_path / "given.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"licence": "CC0", "temperature": NaN}', "NaN is not a valid number in JSON"),
        (json.dumps({"licence": "x" * 4_001}), "licence was ignored; .*at most 4,000 characters"),
        ('{"examples": "one"}', "examples was ignored; found .one."),
        ("[" * 40_000, "its brackets are nested"),
        ('{"a":' * 9_000, "its brackets are nested"),
        ('{"title": "\\ud800"}', "an unpaired surrogate"),
        ('{"title": "a", "title": "b"}', "occurs twice"),
        ('{"title": ', "not JSON"),
        ("[]", "not a JSON object"),
        (b'{"title": "\xff"}', "not valid UTF-8"),
        (b"[" + b"1," * 200_000, "is longer than 50,000 bytes"),
    ],
)
def test_what_loading_would_drop_is_refused(write, content, message):
    with pytest.raises(DataError, match=f"given.json: .*{message}") as caught:
        read_card(write(content))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_what_is_taken_is_kept(write):
    given = {"title": "A", "licence": "x" * 4_000, "own": {"a": [1, 2.5, None]}}
    taken = read_card(write(b"\xef\xbb\xbf" + json.dumps(given).encode()))  # with a mark at the start
    assert taken == given
    kept, warnings = card.read_card(json.dumps(taken).encode())
    assert (kept.title, len(kept.licence), dict(kept.other)) == ("A", 4_000, {"own": {"a": [1, 2.5, None]}})
    assert not warnings


def test_none_is_an_empty_one(tmp_path):
    assert read_card(None) == {}
    with pytest.raises(DataError, match=r"none.json: cannot be read"):
        read_card(tmp_path / "none.json")
