"""A vocabulary file is read as SentencePiece reads it, and no file crashes or hangs the program."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def model(checkpoint_folder):
    return (checkpoint_folder / "source.model").read_bytes()


def field(number, value):
    """One field of a message: bytes, a float or a number."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def varint(value):
    low, high = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(high) if high else bytes([low])


def piece(text, score=-1.0, kind=1):
    return field(1, field(1, text.encode()) + field(2, score) + field(3, kind))


UNK = piece("<unk>", 0.0, 2)


def refused(model, message):
    with pytest.raises(TokenizerError, match=message) as caught:
        sentencepiece_check.check(model)
    assert len(str(caught.value)) < 300


def test_pieces_are_read_as_sentencepiece_reads_them_and_a_verdict_is_remembered(model, monkeypatch):
    found = sentencepiece_check.read(model)
    assert tuple(p.text for p in found) == Tokenizer(model).pieces
    assert [p.type for p in found[:4]] == [3, 2, 3, 3]
    assert all(p.type == 1 and p.score < 0 for p in found[4:])
    sentencepiece_check.check(model)
    for kept in (1, 100, -1):
        refused(model[:kept], "damaged|ends inside|cannot use this file")
    monkeypatch.setattr(sentencepiece_check, "try_out", None)  # would fail if it were called
    sentencepiece_check.check(model)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS pointer"),
        (b'{"model": {"type": "BPE"}}', "JSON"),
        (b"PK\x03\x04rest", "is an archive"),
        (b"\x80" * 30, "it is cut off, or damaged at byte 0"),
        (bytes(range(1, 200)), "damaged"),
        (UNK + piece("x" * 200_000), "token 1 is 200,000 bytes long; the limit is 512"),
        (piece("a") + piece("b"), r"0 tokens for unknown text \(none\)"),
        (UNK + piece("a") + piece("a"), "token 2 is 'a', the same as token 1"),
        (UNK + piece("a", float("nan")), "'a', has the score nan"),
        (UNK + piece(""), "token 1 is empty"),
        (UNK + piece("a", -1.0, 9), "'a', has type 9"),
        (UNK + field(1, field(1, b"\xff")), "token 1 is not UTF-8"),
        (UNK + field(1, field(1, b"a") + field(2, b"x")), "token 1 has a field 2 of the wrong type"),
        (UNK + field(2, field(44, b"?" * 1000)), "with 1,000 bytes"),
        (UNK + field(3, field(2, b"\0\0\0\0" + b"ok\0" + b"x" * 999 + b"\0")), "with 999 bytes; the limit is 64"),
        (field(2, field(3, 1)), "no pieces"),
        (UNK + piece("a\0b"), "SentencePiece cannot use this file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_model_or_breaks_a_rule_is_called_what_it_is(content, message):
    refused(content, message)


@given(st.lists(st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=20))), st.data())
def test_fields_are_read_as_they_were_written_and_any_bytes_are_fields_or_a_value_error(expected, data):
    def read(message):
        found = sentencepiece_check.fields(memoryview(message))
        return [(n, bytes(v) if isinstance(v, memoryview) else v) for n, v in found]

    assert read(b"".join(field(number, value) for number, value in expected)) == expected
    content = data.draw(st.binary(max_size=300))
    try:
        found = read(content)
    except ValueError:
        return
    assert sum(len(value) for _, value in found if isinstance(value, bytes)) <= len(content)


@given(st.lists(st.tuples(st.integers(0, 1999), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_model_is_read_or_refused(checkpoint_folder, changes):
    damaged = bytearray((checkpoint_folder / "source.model").read_bytes()[:2000])
    for place, value in changes:
        damaged[place % len(damaged)] = value
    try:
        found = sentencepiece_check.read(bytes(damaged))
    except TokenizerError as error:
        assert len(str(error)) < 300  # noqa: PT017 (a change may do no harm)
    else:
        assert all(isinstance(p.text, str) for p in found)


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("os._exit(3)", "SentencePiece crashed on the file .exit status"),
        ("ctypes.string_at(0)", "SentencePiece crashed on the file .exit status"),
        ("time.sleep(60)", "did not finish reading the file within 0 seconds"),
    ],
)
def test_a_crash_or_a_model_that_takes_for_ever_stays_in_the_other_process(model, tmp_path, monkeypatch, end, message):
    probe = tmp_path / "probe.py"
    probe.write_text(f"import ctypes, os, sys, time\nsys.stdin.buffer.read()\n{end}\n", encoding="utf-8")
    monkeypatch.setattr(sentencepiece_check, "_PROBE", probe)
    monkeypatch.setattr(sentencepiece_check, "_verdicts", sentencepiece_check.VerdictCache())
    monkeypatch.setattr(sentencepiece_check, "PROBE_SECONDS", 0.3 if "sleep" in end else 30)
    refused(model, message)
