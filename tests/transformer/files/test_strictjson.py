"""Any bytes are strict JSON or one error, at once and in little memory."""

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import AT_ONCE
from transformer.errors import ClauseError
from transformer.files import strictjson

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, st.booleans())
def test_what_json_writes_is_read(value, ascii_only):
    content = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert strictjson.parse(content, max_depth=20) == value
    in_strings = ["[" * 100 + '\\"{' * 50, {"}": "\\"}]
    assert strictjson.parse(b"\xef\xbb\xbf" + json.dumps(in_strings).encode()) == in_strings


@given(st.binary() | st.text().map(str.encode) | st.text('[]{}",:0123456789.eE-\\untrfalse \n').map(str.encode))
def test_any_bytes_are_json_or_a_value_error(content):
    try:
        value = strictjson.parse(content)
    except ValueError as error:
        assert 0 < len(str(error)) < 200  # noqa: PT017 (any bytes may be valid)
    else:
        json.dumps(value, allow_nan=False)


MANY = 2_000_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "not valid UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "1e999.*too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "number with 5,000 digits"),
        (b"[" * 200_000, "nested more than 16 levels deep"),
        (b'["' + b"[" * 50 + b'"' + b"]" * 20, "not JSON"),
        (b'{"a": 1, "a": 2}', "'a' occurs twice"),
        (rb'{"a": "\ud800"}', "surrogate"),
        (b'{"a": 1} x', "not JSON"),
        *((b"[" + piece * (MANY // len(piece)), "it ") for piece in (b'"', b'"\\', b"1", b"{}")),
        (b"[" + b"[]," * MANY + b"[]]", "it has 4,000,002 commas and opening brackets; the limit is 4,000,000"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_refused_is_refused_at_once(content, message):
    started = time.process_time()
    with pytest.raises(ClauseError, match=message):
        strictjson.parse(content)
    assert time.process_time() - started < (20 if len(content) > 10**6 else AT_ONCE)  # in quadratic time hours


def test_strings_take_little_memory():
    tracemalloc.start()
    with pytest.raises(ClauseError, match="not JSON"):
        strictjson.parse(b'"\\' * 2_000_000)  # the pattern of strings took 60 bytes for each of these
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000
