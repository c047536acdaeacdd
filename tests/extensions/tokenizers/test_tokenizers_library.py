"""A tokenizer.json of any kind gives its library's ids and texts, in a process that hostile files cannot leave."""

import functools
import json
import re
import time
from pathlib import Path

import pytest
import tokenizers
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from glassformer.extensions.tokenizers import tokenizers_library
from glassformer.extensions.tokenizers.options import Options
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies
from glassformer.extensions.tokenizers.tokenizers_library import LibraryProcess, ProcessLimits
from tests.extensions.refusing import made_or_refused, refusal
from tests.extensions.tokenizers import foreign
from transformer.checkpoint.tokenizer_files import MAX_JSON
from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import SPACE_MARK

PACKAGE = Path(tokenizers_library.__file__).parents[1]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LLAMA_3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


def trained(made, trainer):
    made.train_from_iterator(foreign.LINES * 3, trainer)
    return made


def template(made, text):
    names = [part for part in text.split() if not part.startswith("$")]
    made.post_processor = processors.TemplateProcessing(
        single=text, special_tokens=[(name, made.token_to_id(name)) for name in dict.fromkeys(names)]
    )
    return made


def word_piece():
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer, made.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    trained(made, trainers.WordPieceTrainer(vocab_size=240, special_tokens=BERT))
    made.enable_truncation(5)  # as the file of a sentence encoder has it
    made.enable_padding(length=9)
    return template(made, "[CLS] $A [SEP]")


def bytes_with_own_pattern():
    """As LLaMA 3, Qwen, SmolLM and Pythia."""
    made = tokenizers.Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(LLAMA_3), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained(made, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet))
    made.add_special_tokens(["<|begin|>", "<|end|>"])
    made.add_tokens(["fox lake"])  # a piece of text, not written in signs of bytes
    return template(made, "<|begin|> $A")


def metaspace():
    """As LLaMA 2: bytes for what is unknown."""
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE_MARK), normalizers.Replace(" ", SPACE_MARK)])
    steps = [decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    made.decoder = decoders.Sequence(steps)
    special = ["<unk>", "<s>", "</s>"]
    trained(made, trainers.BpeTrainer(vocab_size=300, special_tokens=[*special, *(f"<0x{b:02X}>" for b in range(256))]))
    record = json.loads(made.to_str())
    record["added_tokens"] = [token for token in record["added_tokens"] if token["content"] in special]
    return template(tokenizers.Tokenizer.from_str(json.dumps(record)), "<s> $A")


def unigram():
    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"]
    trained(made, trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>"))
    return template(made, "$A </s>")


KINDS = {"wordpiece": word_piece, "bytes": bytes_with_own_pattern, "metaspace": metaspace, "unigram": unigram}


@functools.cache
def content_of(kind):
    return KINDS[kind]().to_str().encode()


def opened(kind, **options):
    return Vocabularies("json", Options(**options), {tokenizers_library.FILE: content_of(kind)}).open()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_are_those_of_transformers(kind, tmp_path):
    (tmp_path / tokenizers_library.FILE).write_bytes(content_of(kind))
    ours = opened(kind)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / tokenizers_library.FILE))
    theirs.backend_tokenizer.no_truncation()
    theirs.backend_tokenizer.no_padding()
    for text in foreign.strings(250, special=["[MASK]", "</s>", "<s>", "<|end|>", "fox lake"]):
        plain = theirs.backend_tokenizer.encode(text, add_special_tokens=False).ids
        found = ours.encode(text)
        assert list(found.ids) == plain
        assert len(found.pieces) == len(plain)
        whole = [*ours.wrapping.before, *plain, *ours.wrapping.after]
        assert theirs.backend_tokenizer.encode(text).ids == whole
        expected = theirs.backend_tokenizer.decode(plain, skip_special_tokens=True)
        assert ours.decode(whole) == expected


def test_pieces_are_written_for_people():
    over_bytes = opened("bytes")
    assert over_bytes.encode(" the é").pieces[0].startswith(SPACE_MARK)
    assert over_bytes.encode("\U0001f98a").pieces == ("<0xF0>", "<0x9F>", "<0xA6>", "<0x8A>")
    assert over_bytes.encode("a fox lake").pieces[-1] == "fox lake"
    assert not over_bytes.is_special(over_bytes.id_of("fox lake"))
    assert opened("metaspace").encode("the fox").pieces[0].startswith(SPACE_MARK)
    assert "<0xA6>" in opened("metaspace").encode("\U0001f98a").pieces
    assert opened("wordpiece").continuation == "##"
    assert opened("unigram").continuation == ""


def test_what_is_unknown_is_shown():
    for kind, unknown in (("wordpiece", "[UNK]"), ("unigram", "<unk>")):
        ours = opened(kind)
        found = ours.encode("the 狐 fox")
        i = found.ids[found.pieces.index("狐")]
        assert (ours.piece(i), ours.is_special(i)) == (unknown, True)


def test_languages_go_around_the_text_instead_of_the_template():
    made = unigram()
    made.add_special_tokens(["en_XX", "ro_RO"])
    files = {tokenizers_library.FILE: template(made, "en_XX $A </s>").to_str().encode()}
    languages = {"source_language": "ro_RO", "target_language": "en_XX"}
    ours = Vocabularies("json", Options(**languages), files).open()[0]
    romanian, english, end = (ours.id_of(name) for name in ("ro_RO", "en_XX", "</s>"))
    assert (ours.wrapping.before, ours.wrapping.after, ours.wrapping.forced) == ((romanian,), (end,), english)
    with pytest.raises(TokenizerError, match=r"does not have the language 'xx'; choose from en_XX, ro_RO\."):
        Vocabularies("json", Options(source_language="xx", target_language="en_XX"), files).open()


def refused(content, message):
    refusal(lambda: tokenizers_library.LibraryTokenizer(content), message, "tokenizer.json: ", TokenizerError)


def changed(**parts):
    record = json.loads(content_of("unigram"))
    return json.dumps(record | parts).encode()


HOSTILE = [
    (b"\xff\xfe", "cannot use this file"),
    (b"[" * 200_000, "cannot use this file"),
    (b'{"model": 3}', "cannot use this file"),
    (b'{"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}', "cannot use this file"),
    (b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}', "cannot use this file"),
    (b'{"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}}', "ids go up to 4,000,000,000"),
    (b'{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "ids go up to −1"),
    (b'{"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}}', "cannot use this file"),
]


def test_hostile_files():
    for content, message in HOSTILE:
        refused(content, message)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 5) | st.text(max_size=4) | st.just("BPE"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "vocab", "a"]), inner),
    max_leaves=8,
)


@settings(max_examples=10)  # each starts a process
@given(st.dictionaries(st.sampled_from(list(json.loads(content_of("unigram")))), JSON, min_size=1, max_size=2))
def test_any_change_is_read_or_refused_in_one_sentence(parts):
    free = sentencepiece_check.VerdictCache()
    free.check = lambda content, find: None  # a process for each example would take minutes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizers_library, "_verdicts", free)
        made_or_refused(
            lambda: tokenizers_library.LibraryTokenizer(changed(**parts)).encode("the fox"),
            "tokenizer.json: ",
            TokenizerError,
        )


@pytest.mark.parametrize("death", ["os._exit(3)", "ctypes.string_at(0)"])
def test_a_crash_stays_in_the_other_process(tmp_path, monkeypatch, death):
    probe = tmp_path / "probe.py"
    probe.write_text(f"import ctypes, os, sys\nsys.stdin.buffer.read()\n{death}\n", encoding="utf-8")
    monkeypatch.setattr(tokenizers_library, "CHILD", probe)
    monkeypatch.setattr(tokenizers_library, "_verdicts", sentencepiece_check.VerdictCache())
    refused(content_of("unigram"), "tokenizers crashed on the file .exit status")


def test_nothing_else_needs_the_library():
    """No module imports it when it is imported itself, but for the one that runs in a process of its own."""
    named = [
        path for path in PACKAGE.rglob("*.py") if re.search(rb"^(import|from) tokenizers\b", path.read_bytes(), re.M)
    ]
    assert named == [tokenizers_library.CHILD]


def words(vocabulary, **parts):
    record = {"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "unk_token": "<unk>"}} | parts
    record["model"]["vocab"] = {"<unk>": 0} | vocabulary
    return json.dumps(record).encode()


def test_rows_between_the_ids_of_a_file_have_names():
    ours = tokenizers_library.LibraryTokenizer(words({"a": 2, "b": 4}))
    assert ours.pieces == ("<unk>", "<unused 1>", "a", "<unused 3>", "b")
    assert [ours.is_special(i) for i in range(5)] == [True, True, False, True, False]
    ours = opened("unigram", size=1000)
    assert (ours.size, ours.piece(999), ours.is_special(999)) == (1000, "<unused 999>", True)
    assert ours.decode([999]) == ""


def test_a_large_file_is_parsed_in_the_other_process_alone():
    """This process does no more than hand it on."""
    content = words({f"{i:04}" + "x" * 386: i for i in range(1, 25_000)})
    assert 9_000_000 < len(content) < MAX_JSON
    began = time.process_time()
    refused(content, "its tokens take up 9,.* bytes in all; the limit is 8,388,608")
    assert time.process_time() - began < 1


def test_pieces_beyond_the_limits_are_not_sent():
    process = LibraryProcess(words({"a": 1, "b": 2}), ProcessLimits(pieces=2))
    refusal(lambda: process.open(), "ids go up to 2, but it may have at most 2 tokens", kind=TokenizerError)
    assert process._process is None
