"""A folder's tokenizer, saved today or long ago, gives the ids and texts of transformers' own."""

import json
import warnings

import pytest
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken

from glassformer.extensions.huggingface import folder_texts
from glassformer.extensions.tokenizers import tokenizers_library
from glassformer.extensions.tokenizers.tokenizer_families import Vocabularies, read_record
from tests.extensions.refusing import made_or_refused, refusal
from tests.extensions.tokenizers import foreign
from transformer.files.untrusted_folder import FolderFiles

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
AS_IT_IS = {
    "kind": "bpe", "size": 560, "byte_fallback": True, "normalization_rule_name": "identity", "split_digits": True,
    "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True,
}  # fmt: skip
GEMMA = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3, "eos_piece": "<eos>", "bos_piece": "<bos>"}
GPT_2 = foreign.byte_pairs()
ROWS = 2_000  # of the table of embeddings: more than any of these vocabularies has


def as_it_is(**settings):
    return {"tokenizer.model": foreign.sentencepiece_model(**AS_IT_IS, **settings)}


def put(folder, files, **config):
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def theirs_of(kind, folder, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sacremoses is not installed
        return getattr(transformers, kind).from_pretrained(folder, **options)


def chosen(folder, *names, **answers):
    return folder_texts.choose(FolderFiles(folder), names, (ROWS, ROWS), answers, {0})[0]


def opened(folder, *names, **answers):
    """The source's tokenizer, as it is written into a folder of ours and read again."""
    stored = chosen(folder, *names, **answers).stored.stored()
    family, options = read_record(stored.pop("vocabulary.json"))
    return Vocabularies(family, options, stored).open()[0]


def compare(ours, theirs, special=(), without="", more=()):
    texts = [*foreign.strings(200, special=special, without=without), *more, "", " ", "a", "x" * 300]
    plain = theirs(texts, add_special_tokens=False).input_ids
    whole = theirs(texts[:50]).input_ids
    joined = theirs.batch_decode(plain, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    for text, ids, expected in zip(texts, plain, joined, strict=True):
        found = ours.encode(text).ids
        assert list(found) == ids, text
        assert ours.decode(found) == expected, text
    around = ours.wrapping
    for text, ids in zip(texts, whole, strict=False):
        assert [*around.before, *ours.encode(text).ids, *around.after] == ids


SAVED = {
    "T5Tokenizer": (foreign.t5, "t5"),
    "RobertaTokenizer": (lambda: foreign.byte_pairs(FAIRSEQ), "roberta"),
    "BertTokenizer": (foreign.word_pieces, "bert"),
    "Qwen2Tokenizer": (foreign.byte_pairs, "json"),
    "GemmaTokenizer": (lambda: as_it_is(**GEMMA, add_dummy_prefix=False), "json"),
}


@pytest.mark.parametrize("kind", SAVED)
def test_what_transformers_saves_today(tmp_path, kind):
    files, name = SAVED[kind]
    theirs = theirs_of(kind, put(tmp_path / "made", files()))
    theirs.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "vocab.json").exists()  # today it is tokenizer.json alone
    ours = opened(tmp_path / "saved", name)
    compare(ours, theirs, special=["</s>", "<s>", "<unk>", "[MASK]", "<|endoftext|>", "<extra_id_1>", "<mask_1>"])


@pytest.mark.parametrize(("kind", "begin", "end"), [("LlamaTokenizer", True, False), ("GemmaTokenizer", False, True)])
def test_a_sentencepiece_model_without_a_tokenizer_json(tmp_path, kind, begin, end):
    more = GEMMA | {"add_dummy_prefix": False} if kind == "GemmaTokenizer" else {}
    folder = put(tmp_path / "m", as_it_is(**more), add_bos_token=begin, add_eos_token=end)
    special = ["<s>", "</s>", "<unk>", "<bos>", "<eos>"]
    texts = [" a", "  a", "▁a", "a  b ", "<s> a", "<s>a", "a</s>b c", " <s>", "\na\n\n狐"]
    compare(opened(folder, "json", "llama"), theirs_of(kind, folder), special=special, more=texts)


def test_a_text_of_such_a_model_begins_with_its_piece_unless_the_folder_says_otherwise(tmp_path):
    """As these models were trained; transformers 5 leaves it out where no file says so, against its description."""
    ours = opened(put(tmp_path / "m", as_it_is()), "llama")
    assert (ours.wrapping.before, ours.wrapping.after) == ((ours.id_of("<s>"),), ())


@pytest.mark.parametrize("kind", ["BertTokenizer", "RobertaTokenizer"])
def test_pieces_that_were_added_later(tmp_path, kind):
    """As version 4 listed them beside the family's own files."""
    make, name = SAVED[kind]
    files = make()
    made = theirs_of(kind, put(tmp_path / "made", files))
    strips = [AddedToken("[L]", lstrip=True, special=True), AddedToken("[R]", rstrip=True, special=True)]
    made.add_special_tokens({"additional_special_tokens": [AddedToken("<|user|>", special=True), *strips]})
    made.add_tokens([AddedToken("foxes"), AddedToken("lone", single_word=True), AddedToken("KÄFER", normalized=False)])
    decoder = {
        i: {key: getattr(token, key) for key in ("content", "special", "lstrip", "rstrip", "single_word", "normalized")}
        for i, token in made.added_tokens_decoder.items()
    }
    folder = put(tmp_path / "old", files, added_tokens_decoder=decoder, tokenizer_class=kind)
    special = ["<|user|>", " [L] ", " [R] ", "foxes", "lone", "alone", "KÄFER", "Foxes"]
    compare(opened(folder, name), made, special=special, without=foreign.newer_than_theirs() if name == "bert" else "")


def test_pieces_that_were_added_long_ago(tmp_path):
    files = foreign.byte_pairs()
    last = len(json.loads(files["vocab.json"]))
    files |= {
        "added_tokens.json": {"[PAD]": last, "fox lake": last + 2},  # a row is left out
        "special_tokens_map.json": {"pad_token": "[PAD]", "eos_token": {"content": "<|endoftext|>", "lstrip": False}},
    }
    ours = opened(put(tmp_path / "m", files), "gpt2")
    assert ours.encode("a[PAD]fox lake").ids == (*ours.encode("a").ids, last, last + 2)
    assert [ours.is_special(i) for i in range(last, last + 4)] == [True, True, False, True]
    assert ours.decode([last, last + 2, *ours.encode(" fox").ids]) == "fox lake fox"
    assert ours.pieces[last + 1] == f"<unused {last + 1}>"


DAMAGED = [
    ({"added_tokens.json": {"[PAD]": 3}}, {}, r"'\[PAD\]' has the id 3, which belongs to .* in the vocabulary"),
    ({"added_tokens.json": {"[PAD]": 3_000}}, {}, "vocabulary has 3,001 tokens, but the model's embedding table has"),
    ({"added_tokens.json": {"a": 500, "b": 500}}, {}, "'b' has the id 500, which 'a' already has"),
    ({"added_tokens.json": {str(i): i for i in range(5_001)}}, {}, "has 5,001 added tokens; the limit is 5,000"),
    ({"special_tokens_map.json": b"{"}, {}, "special_tokens_map.json: it is not JSON"),
    ({}, {"added_tokens_decoder": {"7": 3}}, r"added_tokens_decoder.7: expected a JSON object, found 3"),
    (
        {},
        {"added_tokens_decoder": {"7": {"content": ""}}},
        "added token '': content: found '', expected a string of 1 to 512",
    ),
    ({}, {"added_tokens_decoder": {"7": {"content": "a", "lstrip": 1}}}, "lstrip: found 1, expected true"),
]


def test_added_pieces_that_are_damaged_are_refused_by_their_file(tmp_path):
    for number, (files, config, message) in enumerate(DAMAGED):
        folder = put(tmp_path / str(number), GPT_2 | files, **config)
        refusal(lambda folder=folder: chosen(folder, "gpt2"), message, f"{folder}: ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 700) | st.text(max_size=4) | st.sampled_from(["<|endoftext|>", "th"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "special", "lstrip", "500", "7", "pad_token"]), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = ["added_tokens_decoder", "tokenizer_class", "add_bos_token", "add_prefix_space", "pad_token",
         "legacy_behaviour", "additional_special_tokens", "do_lower_case", "extra_ids", "vocab_file"]  # fmt: skip


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    config=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=3),
    added=st.dictionaries(st.text(max_size=3), st.integers(-1, 600)) | JSON,
    special=JSON,
)
def test_any_settings_are_read_or_refused_in_a_sentence(tmp_path_factory, config, added, special):
    files = {"added_tokens.json": added, "special_tokens_map.json": special}
    folder = put(tmp_path_factory.mktemp("v") / "m", GPT_2 | files, **config)
    made = made_or_refused(lambda: chosen(folder, "gpt2"), f"{folder}: ")
    if made is not None:
        made.source.decode(made.source.encode("the fox <|endoftext|>").ids)


@pytest.mark.parametrize(
    ("kind", "names"), [("MBartTokenizer", ("mbart",)), ("MBart50Tokenizer", ("mbart50",))], ids=str
)
def test_languages_of_a_folder_with_a_tokenizer_json_alone(tmp_path, kind, names):
    theirs = theirs_of(kind, put(tmp_path / "made", foreign.fairseq()), src_lang="de_DE", tgt_lang="ro_RO")
    theirs.save_pretrained(tmp_path / "m")
    for asked in ({}, {"source_language": "de_DE"}):
        found, languages = folder_texts.choose(FolderFiles(tmp_path / "m"), names, (ROWS, ROWS), asked, {0})
        assert found is None
        assert {"de_DE", "ro_RO"} <= {*languages}
    ours = opened(tmp_path / "m", *names, source_language="de_DE", target_language="ro_RO")
    compare(ours, theirs, special=["</s>", "fr_XX"])
    romanian = theirs.convert_tokens_to_ids("ro_RO")
    around = ours.wrapping
    assert (around.start, around.forced) == ((romanian, None) if kind == "MBartTokenizer" else (None, romanian))


def test_the_folder_says_which_tokenizer_it_has(tmp_path):
    """A GPT-2 that was trained on T5's pieces, and a BERT whose words are cut by another program."""
    folder = put(tmp_path / "rinna", foreign.t5(), tokenizer_class="T5TokenizerFast")
    assert chosen(folder, "gpt2").stored.family == "t5"
    folder = put(tmp_path / "cl", foreign.word_pieces(), tokenizer_class="BertJapaneseTokenizer")
    found = chosen(folder, "bert")
    assert found.stored.family == "raw"
    assert str(found.notes[0]).startswith(
        "The folder's tokenizer is 'BertJapaneseTokenizer'. This program cannot read it"
    )
    assert chosen(put(tmp_path / "bytes", {}, tokenizer_class="ByT5Tokenizer"), "t5").stored.family == "byt5"
    assert str(chosen(put(tmp_path / "none", {}), "bert").notes[0]).startswith("The folder has no tokenizer")


def test_without_the_library_the_sentencepiece_model_is_read(tmp_path, monkeypatch):
    folder = put(tmp_path / "m", as_it_is() | {"tokenizer.json": b"{}"})
    refusal(lambda: chosen(folder, "json", "llama"), r"m: tokenizer.json: tokenizers cannot use this file")
    monkeypatch.setattr(tokenizers_library, "find_spec", lambda name: None)
    assert chosen(folder, "json", "llama").stored.family == "llama"
    (folder / "tokenizer.model").unlink()
    refusal(lambda: chosen(folder, "json", "llama"), r"pip install 'glassformer\[hf\]'")
