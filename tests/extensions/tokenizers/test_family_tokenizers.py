"""Each family's tokenizer gives the ids and the texts of transformers' own, made from the same tiny vocabulary."""

import functools
import json
import unicodedata

import pytest
import tokenizers
import transformers
from tokenizers import normalizers, pre_tokenizers

from glassformer.extensions.tokenizers import options, subword_tokenizers
from glassformer.extensions.tokenizers.options import Options, language_name
from glassformer.extensions.tokenizers.tokenizer_families import FAMILIES, Vocabularies
from tests.extensions.refusing import refusal
from tests.extensions.tokenizers import foreign
from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import SPACE_MARK

ROMANIAN = {"source_language": "en_XX", "target_language": "ro_RO"}
FRENCH = {"source_language": "eng_Latn", "target_language": "fra_Latn"}
FRENCH_100 = {"source_language": "en", "target_language": "fr"}
SPOKEN = {"mbart": ROMANIAN, "mbart50": ROMANIAN, "nllb": FRENCH, "m2m100": FRENCH_100}
# Where `tokenizers` differs from SentencePiece itself, which reads these files here: it normalises whole clusters of
# combining marks, and takes the mark of a space for a letter where it stands in a text.
COMBINING = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] == "M") + "\x85\u200d"
ODD = COMBINING + SPACE_MARK
FAIRSEQ = ["</s>", "<pad>", "<unk>"]
N_TEXTS = 250
CASED = {"lower_case": False}

# Its class in transformers, its special pieces, characters of which theirs knows less, options there.
KINDS = {
    "marian": (transformers.MarianTokenizer, FAIRSEQ, "", {}),
    "t5": (transformers.T5Tokenizer, ["</s>", "<extra_id_0>", "<extra_id_99>", "<unk>"], COMBINING, {}),
    "pegasus": (transformers.PegasusTokenizer, ["</s>", "<mask_1>", " <mask_2>", "<unk>", "<unk_7>"], ODD, {}),
    "mbart": (transformers.MBartTokenizer, ["</s>", "<mask>", "fr_XX", "<unk>"], ODD, ROMANIAN),
    "mbart50": (transformers.MBart50Tokenizer, ["</s>", "<mask>", "fr_XX", "<unk>"], ODD, ROMANIAN),
    "nllb": (transformers.NllbTokenizer, FAIRSEQ, ODD, {}),
    "m2m100": (transformers.M2M100Tokenizer, FAIRSEQ, "", FRENCH_100),
    "gpt2": (transformers.GPT2Tokenizer, ["<|endoftext|>"], "", {}),
    "bert": (transformers.BertTokenizer, ["[MASK]", "[SEP]", "[UNK]"], None, {}),
    "roberta": (transformers.RobertaTokenizer, ["<s>", "</s>", "<mask>", "<pad>", "<unk>"], "", {}),
    "byt5": (transformers.ByT5Tokenizer, ["</s>", " <pad> ", "<extra_id_3>"], "", {}),
}


@functools.cache
def files_of(name):
    made = {
        "marian": foreign.marian,
        "t5": foreign.t5,
        "pegasus": foreign.t5,
        "mbart": foreign.fairseq,
        "mbart50": foreign.fairseq,
        "nllb": lambda: foreign.fairseq(kind="bpe"),
        "m2m100": foreign.m2m100,
        "gpt2": foreign.byte_pairs,
        "roberta": lambda: foreign.byte_pairs(("<s>", "<pad>", "</s>", "<unk>", "<mask>")),
        "llama": lambda: {"tokenizer.model": foreign.sentencepiece_model(bos_id=1, eos_id=2)},
        "bert": foreign.word_pieces,
        "byt5": dict,
        "list": lambda: {"vocab.txt": "\n".join(["<pad>", "<s>", "</s>", "<unk>", *"0123456789+="]).encode()},
    }
    return made[name]()


def opened(name, **options):
    return Vocabularies(name, Options(**options), files_of(name)).open()


def reference(kind, files, folder, *, config=None, **options):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if config:
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return kind.from_pretrained(folder, **options) if files else kind(**options)


def as_on_the_hub(theirs, model):
    """With the normaliser of the hub's files: rebuilt by transformers 5 it keeps a space at the end, or is none."""
    settings = next(value for number, value in sentencepiece_check.fields(memoryview(model)) if number == 3)
    rules = next(bytes(value) for number, value in sentencepiece_check.fields(settings) if number == 2)
    theirs._tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Precompiled(rules),
            normalizers.Strip(left=False, right=True),
            normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    return theirs


def equal(ours, theirs, texts):
    """Ids of a text without what goes around it, and the text that they are joined to."""
    for text in texts:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        found = ours.encode(text)
        assert list(found.ids) == expected, text
        assert len(found.pieces) == len(found.ids)
        assert ours.decode(expected) == theirs.decode(expected, skip_special_tokens=True), text


def wrapped(tokenizer, text):
    around = tokenizer.wrapping
    return [*around.before, *tokenizer.encode(text).ids, *around.after]


SETTINGS = [*((name, {}, {}) for name in KINDS), ("bert", CASED, {"do_lower_case": False}),
            ("roberta", {"leading_space": True}, {"add_prefix_space": True})]  # fmt: skip


@pytest.mark.parametrize(("name", "chosen", "config"), SETTINGS)
def test_ids_and_texts_are_those_of_transformers(name, chosen, config, tmp_path):
    kind, special, without, languages_there = KINDS[name]
    files = foreign.word_pieces(**CASED) if chosen == CASED else files_of(name)
    ours = Vocabularies(name, Options(**SPOKEN.get(name, {}), **chosen), files).open()[0]
    options = dict(zip(("src_lang", "tgt_lang"), languages_there.values(), strict=False))
    theirs = reference(kind, files, tmp_path, config=config, **options)
    if without == ODD:
        as_on_the_hub(theirs, next(content for file, content in files.items() if file.endswith(".model")))
    if name == "roberta":  # the mask takes the space before it, as in the files of the hub; rebuilt theirs forgets that
        theirs._tokenizer.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    without = foreign.newer_than_theirs() if without is None else without
    equal(ours, theirs, foreign.strings(N_TEXTS, special=special, without=without))
    if name != "nllb":  # rebuilt from this file alone theirs knows no languages
        assert wrapped(ours, "the fox") == theirs("the fox").input_ids


def test_what_marian_begins_with_and_its_vocabularies(tmp_path):
    ours, target = opened("marian")
    theirs = reference(transformers.MarianTokenizer, files_of("marian"), tmp_path)
    for text in (">>fra<< the fox", ">>deu<<the lake", ">>xyz<< a", ">>fra", "a >>fra<< b"):
        assert wrapped(ours, text) == theirs(text).input_ids
    assert ours.is_special(ours.id_of(">>fra<<"))
    assert target.encode("a fox").ids == tuple(theirs(text_target="a fox").input_ids[:-1])
    spoken = opened("marian", target_language="fra")[0]
    assert wrapped(spoken, "the fox") == theirs(">>fra<<the fox").input_ids
    files = foreign.marian(separate=True)
    ours = Vocabularies("marian", Options(), files).open()
    theirs = reference(transformers.MarianTokenizer, files, tmp_path, config={"separate_vocabs": True})
    assert ours[0].size != ours[1].size
    for text in foreign.strings(N_TEXTS):
        assert wrapped(ours[0], text) == theirs(text).input_ids
        expected = theirs(text_target=text).input_ids
        theirs._switch_to_input_mode()
        assert wrapped(ours[1], text) == expected
        read = [i for i in expected if i != ours[1].id_of("<pad>")]  # theirs is called by its id in the other one
        assert ours[1].decode(read) == theirs.decode(read, skip_special_tokens=True)


def test_rows_beyond_the_pieces_of_a_file(tmp_path):
    """T5's marks of gaps, Pegasus's rows of its training, and the languages behind the pieces."""
    ours = opened("t5", size=300)[0]
    theirs = reference(transformers.T5Tokenizer, files_of("t5"), tmp_path)
    assert ours.id_of("<extra_id_0>") == len(theirs) - 1 == theirs.convert_tokens_to_ids("<extra_id_0>")
    assert ours.size == 300
    assert all(map(ours.is_special, range(len(theirs) - 100, 300)))
    files = foreign.t5(user_defined_symbols=[f"<extra_id_{k}>" for k in reversed(range(3))])
    ours = Vocabularies("t5", Options(extra_ids=3), files).open()[0]
    assert ours.size == len(foreign.pieces_of(files["spiece.model"]))
    ours = opened("pegasus")[0]
    assert (ours.id_of("<mask_1>"), ours.id_of("<unk_2>"), ours.id_of("<unk>")) == (2, 4, 105)
    romanian, around = [opened(name, **ROMANIAN)[0] for name in ("mbart", "mbart50")], []
    for one in romanian:
        around.append((one.wrapping.start, one.wrapping.forced))
    assert around == [(romanian[0].id_of("ro_RO"), None), (None, romanian[1].id_of("ro_RO"))]
    ours = opened("m2m100", **FRENCH_100)[0]
    assert ours.wrapping.forced == ours.id_of("__fr__")
    assert ours.id_of("__en__") - ours.id_of("__af__") == 128_022 - 128_004


def test_nllbs_languages_have_the_ids_that_the_real_ones_have():
    ours = opened("nllb", **FRENCH)[0]
    n_pieces = len(foreign.pieces_of(files_of("nllb")["sentencepiece.bpe.model"]))
    assert options.LANGUAGE_CODES["nllb"].index("eng_Latn") == 256_047 - 256_001
    assert (n_pieces + 1 + options.LANGUAGE_CODES["nllb"].index("eng_Latn"),) == ours.wrapping.before
    assert ours.wrapping.forced == ours.id_of("fra_Latn") == n_pieces + 1 + 256_057 - 256_001
    assert ours.id_of("zho_Hans") - ours.id_of("eng_Latn") == 256_200 - 256_047
    assert ours.id_of("<mask>") - ours.id_of("eng_Latn") == 256_203 - 256_047
    legacy = opened("nllb", legacy=True, **FRENCH)[0].wrapping
    assert (legacy.before, legacy.after) == ((), (2, ours.id_of("eng_Latn")))


def test_bert_does_not_cut_long_words(tmp_path):
    ours, theirs = opened("bert")[0], reference(transformers.BertTokenizer, files_of("bert"), tmp_path)
    long = "fox" * 34
    assert [ours.encode(text).pieces for text in (long, long[:100])] == [(long,), tuple(theirs.tokenize(long[:100]))]


def test_words_are_cut_as_by_the_library_at_every_character():
    """Those of GPT-2 at all that Python knows; those of BERT but for characters that are newer than its table."""
    theirs = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for some in batched(foreign.characters(), 50):
        text = "".join(f"a{c}b {c} 1{c}{c}\n" for c in some)
        expected = [end - start for _, (start, end) in theirs.pre_tokenize_str(text)]
        assert [len(word) for word in subword_tokenizers.words(text)] == expected, [hex(ord(c)) for c in some]
    newer = foreign.newer_than_theirs()
    assert len(newer) < 600
    assert min(newer) > "\u0600"
    assert not any(unicodedata.category(c)[0] in "LNZ" for c in newer)


def batched(many, size):
    return (many[start : start + size] for start in range(0, len(many), size))


def test_pieces_over_bytes_are_written_for_people():
    ours = opened("gpt2")[0]
    assert ours.encode("the fox").pieces[0] == "the"
    assert "".join(ours.encode("a fox's lake").pieces).replace(SPACE_MARK, " ") == "a fox's lake"
    assert ours.encode("\U0001f98a").pieces == ("<0xF0>", "<0x9F>", "<0xA6>", "<0x8A>")
    assert ours.encode(SPACE_MARK).pieces == ("<0xE2>", "<0x96>", "<0x81>")  # it says that there was no space
    assert ours.id_of(f"{SPACE_MARK}a") is not None
    assert opened("byt5")[0].encode("é a").pieces == ("<0xC3>", "<0xA9>", SPACE_MARK, "a")


def test_what_is_unknown_is_shown():
    for name in ("bert", "t5", "marian", "mbart", "m2m100"):
        ours = opened(name, **SPOKEN.get(name, {}))[0]
        found = ours.encode("the 狐 fox")
        unknown = next(i for i, piece in zip(found.ids, found.pieces, strict=True) if "狐" in piece)
        assert ours.piece(unknown) in ("[UNK]", "<unk>")
        assert ours.is_special(unknown)


@pytest.mark.parametrize("name", SPOKEN)
def test_a_family_that_needs_languages_lists_them_by_names_of_their_own(name):
    asked = SPOKEN[name]["source_language"]
    for given in ({}, {"source_language": asked}, {"target_language": asked}):
        with pytest.raises(TokenizerError, match=f"needs both languages; choose from .*{asked}"):
            opened(name, **given)
    with pytest.raises(TokenizerError, match=f"does not have the language 'xx'; choose from .*{asked}"):
        opened(name, source_language="xx", target_language=asked)
    codes = options.LANGUAGE_CODES[name if name in ("nllb", "m2m100") else "mbart50"]
    names = {language_name(code) for code in codes}
    assert len(names) == len(codes)
    assert not names & set(codes)
    assert [language_name(code) for code in ("zho_Hant", "xx_YY")] == ["Chinese, traditional", "xx_YY"]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("json", "raw")])
def test_what_every_tokenizer_can_do(name):
    options = SPOKEN.get(name, {})
    plain = opened(name, **options)[0].size
    for ours in opened(name, size=plain + 3, **options):
        assert ours.size == len(ours.pieces) == plain + 3
        assert all(ours.is_special(i) for i in range(plain, plain + 3))
        assert all(ours.pieces[ours.id_of(piece)] == piece for piece in ours.pieces)
        assert ours.encode("").ids == ()
        for i in (-1, ours.size):
            for method in (ours.piece, ours.is_special, lambda i, ours=ours: ours.decode([i])):
                refusal(lambda i=i, method=method: method(i), "outside the vocabulary", kind=TokenizerError)
    with pytest.raises(TokenizerError, match=f"has {plain:,} tokens, but the model's embedding table has only 3 rows"):
        opened(name, size=3, **options)
