"""A damaged or hostile vocabulary file is refused in one sentence that begins with its name, and at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.extensions.tokenizers import vocabulary
from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import FAMILIES, VOCABULARY, Vocabularies, read_record
from tests.extensions.refusing import made_or_refused, refusal
from tests.extensions.tokenizers import foreign
from transformer.errors import TokenizerError

ROBERTA = foreign.byte_pairs(("<s>", "<pad>", "</s>", "<unk>", "<mask>"))


def vocab_json(**changes):
    """vocab.json with other ids; None takes a piece out."""
    record = json.loads(ROBERTA["vocab.json"]) | changes
    return json.dumps({piece: i for piece, i in record.items() if i is not None}).encode()


def refused(family, files, message, **options):
    refusal(Vocabularies(family, Options(**options), files).open, message, kind=TokenizerError)


VOCAB_JSON = [
    (b"[" * 200_000, "its brackets are nested more than 16 levels deep"),
    (b"{}", "has no tokens"),
    (b'{"a": 0, "a": 1}', "occurs twice"),
    (b'{"a": true}', "'a' has the id True; expected a whole number"),
    (b'{"a": -1}', "has the id -1; expected a whole number from 0 to 999,999"),
    (b'{"a": 0, "b": 0}', "'b' has the id 0, which 'a' already has"),
    (b'{"\\ud800": 0}', "an unpaired surrogate"),
    (json.dumps({"a" * 513: 0}).encode(), "513 characters; the limit is 512"),
    (b'{"a": 0, "<s>": 1}', "no token for the byte 0x21"),
    (vocab_json(**{"<s>": None, "<s2>": 0}), "has no token '<s>', which this family of models needs"),
]
MERGES = [
    (b"\xff", "not UTF-8"),
    (b"t h e\n", "line 1 is 't h e'; expected two tokens with a space between them"),
    (b"#version: 0.2\n\nt h\n", "line 2 is ''; expected two tokens"),
    ("t 狐\n".encode(), "line 1 needs the token '狐', which the vocabulary does not have"),
    (b"t h\nt h\n", "line 2 merges 't' and 'h', as line 1 already does"),
]
VOCAB_TXT = [
    (b"", "has no tokens"),
    (b"[UNK]\na\n[UNK]\n", "line 3 is '.UNK.', the same as line 1"),
    (b"a" * 600, "600 characters; the limit is 512"),
]
LISTS = [
    ("vocab.txt", b"a\n\nb", "the token with the id 1 is empty"),
    ("vocab.json", b'{"a": 0, "b": 2}', "no token has the id 1; every id from 0 to 2 needs"),
    ("vocab.json", b'["a"]', "expected a JSON object"),
    ("vocab.txt", b"ab c\nd", "the token 'ab c' contains a space"),
]


def test_each_damage_is_told_with_its_file():
    for content, message in VOCAB_JSON:
        refused("roberta", ROBERTA | {"vocab.json": content}, rf"^vocab\.json: .*{message}")
    names = [*json.loads(ROBERTA["vocab.json"]), *(["th"] if b'"th"' not in ROBERTA["vocab.json"] else [])]
    for content, message in MERGES:
        files = {"vocab.json": foreign.as_json(names), "merges.txt": content}
        refused("roberta", files, rf"^merges\.txt: .*{message}")
    for content, message in VOCAB_TXT:
        refused("bert", {"vocab.txt": content}, rf"^vocab\.txt: .*{message}")
    for name, content, message in LISTS:
        refused("list", {name: content}, rf"^{name}: {message}")
    for family, make, name in (("marian", foreign.marian, "target.spm"), ("t5", foreign.t5, "spiece.model")):
        refused(family, make() | {name: b"{"}, f"^{name}: ")


def test_gaps_no_merges_and_lines_as_on_windows_are_read():
    last = max(json.loads(ROBERTA["vocab.json"]).values())
    ours = Vocabularies("roberta", Options(), ROBERTA | {"vocab.json": vocab_json(late=last + 3)}).open()[0]
    assert ours.pieces[last + 1 :] == (f"<unused {last + 1}>", f"<unused {last + 2}>", "late")
    assert [ours.is_special(i) for i in (last + 1, last + 2, last + 3)] == [True, True, False]
    ours = Vocabularies("roberta", Options(), ROBERTA | {"merges.txt": b""}).open()[0]
    assert ours.encode("the").pieces == ("t", "h", "e")  # single bytes
    content = b"\xef\xbb\xbf[UNK]\r\n[CLS]\r\n[SEP]\r\nfox\r\n"
    ours = Vocabularies("bert", Options(), {"vocab.txt": content}).open()[0]
    assert ours.pieces == ("[UNK]", "[CLS]", "[SEP]", "fox")


@pytest.mark.parametrize("family", [name for name, family in FAMILIES.items() if family.files])
def test_each_file_that_is_missing_is_named(family):
    refused(family, {}, r"^[a-z._]+: is missing\.$")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"family": "t5", "options": 3}', "expected a JSON object"),
        (b'{"family": "../t5"}', "family: found '../t5', expected one of marian, t5"),
        (b'{"family": "t5", "options": {"path": "/etc"}}', "'path': is not a known option"),
        (b'{"family": "t5", "options": {"size": -1}}', "size: found -1, expected a whole number from 0 to 1,000,000"),
        (b'{"family": "t5", "options": {"legacy": 1}}', "legacy: found 1, expected true or false"),
        (b'{"family": "t5", "options": {"source_language": ["a"]}}', "source_language: found"),
    ],
    ids=str,
)
def test_vocabulary_json(content, message):
    refusal(lambda: read_record(content), message, f"{VOCABULARY}: ", TokenizerError)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(JSON | st.dictionaries(st.sampled_from(["family", "options"]), JSON))
def test_any_record_is_read_or_refused(record):
    made_or_refused(lambda: read_record(json.dumps(record).encode()), VOCABULARY, TokenizerError)


@given(st.data())
def test_damaged_files_are_read_or_refused(data):
    name = data.draw(st.sampled_from(["vocab.json", "merges.txt"]))
    damaged = bytearray(ROBERTA[name])
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    stored = Vocabularies("roberta", Options(), ROBERTA | {name: bytes(damaged)})
    if made := made_or_refused(stored.open, ("vocab.json: ", "merges.txt: "), TokenizerError):
        made[0].encode("the quick 狐")


@given(st.binary(max_size=60))
def test_any_bytes_of_a_word_list_are_read_or_refused(content):
    stored = Vocabularies("bert", Options(), {"vocab.txt": b"[UNK]\n[CLS]\n[SEP]\n" + content})
    if made := made_or_refused(stored.open, "vocab.txt: ", TokenizerError):
        made[0].encode(content.decode())


def test_what_is_too_much_is_counted_before_it_is_split(monkeypatch):
    lines = b"\n" * 15_000_000
    refused("bert", {"vocab.txt": lines}, r"^vocab\.txt: has 15,000,000 lines; the limit is 1,000,000\.")
    refused("roberta", ROBERTA | {"merges.txt": lines}, r"^merges\.txt: has 15,000,000 lines; the limit is 1,000,000")
    many = b'{"a":[' + b"[]," * 5_000_000
    refused("roberta", ROBERTA | {"vocab.json": many}, "5,000,000|commas and opening brackets")
    monkeypatch.setattr(vocabulary, "MAX_PIECES", 20)
    refused("roberta", ROBERTA, r"^vocab\.json: has too many tokens; the limit is 20")
    refused("bert", foreign.word_pieces(), r"^vocab\.txt: has 260 lines; the limit is 20")
