"""Each family against transformers' own tokenizer, made from the same tiny vocabulary: ids and texts are equal."""

import functools
import json
import unicodedata

import pytest
import tokenizers
import transformers
from tokenizers import normalizers

from glassformer.extensions.tokenizers import languages
from glassformer.extensions.tokenizers.options import Options, options_of_config
from glassformer.extensions.tokenizers.tokenizer_families import FAMILIES, Vocabularies
from tests.extensions.tokenizers import foreign
from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import SPACE_MARK, Tokenizer

ROMANIAN = {"source_language": "en_XX", "target_language": "ro_RO"}
FRENCH = {"source_language": "eng_Latn", "target_language": "fra_Latn"}
FRENCH_100 = {"source_language": "en", "target_language": "fr"}
# Where `tokenizers` differs from SentencePiece itself, which reads these files here: it normalises whole clusters of
# combining marks, and takes the mark of a space for a letter where it stands in a text.
COMBINING = "".join(c for c in map(chr, range(0x20000)) if unicodedata.category(c)[0] == "M") + "\x85\u200d"
ODD = COMBINING + SPACE_MARK


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
    return kind.from_pretrained(folder, **options)


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
    assert len(texts) >= 2_000
    for text in texts:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        found = ours.encode(text)
        assert list(found.ids) == expected, text
        assert len(found.pieces) == len(found.ids)
        assert ours.decode(expected) == theirs.decode(expected, skip_special_tokens=True), text


def wrapped(tokenizer, text):
    around = tokenizer.wrapping
    return [*around.before, *tokenizer.encode(text).ids, *around.after]


def test_marian(tmp_path):
    ours, target = opened("marian")
    theirs = reference(transformers.MarianTokenizer, files_of("marian"), tmp_path)
    equal(ours, theirs, foreign.strings(special=["</s>", "<unk>", "<pad>"]))
    for text in (">>fra<< the fox", ">>deu<<the lake", ">>xyz<< a", ">>fra", "a >>fra<< b"):
        assert wrapped(ours, text) == theirs(text).input_ids
    assert ours.is_special(ours.id_of(">>fra<<"))
    assert target.encode("a fox").ids == tuple(theirs(text_target="a fox").input_ids[:-1])
    spoken = opened("marian", target_language="fra")[0]
    assert wrapped(spoken, "the fox") == theirs(">>fra<<the fox").input_ids


def test_marian_with_a_vocabulary_for_each_side(tmp_path):
    files = foreign.marian(separate=True)
    ours = Vocabularies("marian", Options(), files).open()
    theirs = reference(transformers.MarianTokenizer, files, tmp_path, config={"separate_vocabs": True})
    assert ours[0].size != ours[1].size
    for text in foreign.strings():
        assert wrapped(ours[0], text) == theirs(text).input_ids
        expected = theirs(text_target=text).input_ids
        theirs._switch_to_input_mode()
        assert wrapped(ours[1], text) == expected
        read = [i for i in expected if i != ours[1].id_of("<pad>")]  # theirs is called by its id in the other one
        assert ours[1].decode(read) == theirs.decode(read, skip_special_tokens=True)


def test_t5(tmp_path):
    ours = opened("t5", size=300)[0]
    theirs = reference(transformers.T5Tokenizer, files_of("t5"), tmp_path)
    special = ["</s>", "<extra_id_0>", "<extra_id_99>", "<unk>"]
    equal(ours, theirs, foreign.strings(special=special, without=COMBINING))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    assert ours.id_of("<extra_id_0>") == len(theirs) - 1 == theirs.convert_tokens_to_ids("<extra_id_0>")
    assert ours.size == 300
    assert all(map(ours.is_special, range(len(theirs) - 100, 300)))


def test_t5_whose_model_has_the_extra_pieces_itself():
    files = foreign.t5(user_defined_symbols=[f"<extra_id_{k}>" for k in reversed(range(3))])
    ours = Vocabularies("t5", Options(extra_ids=3), files).open()[0]
    assert ours.size == len(foreign.pieces_of(files["spiece.model"]))


def test_pegasus(tmp_path):
    ours = opened("pegasus")[0]
    theirs = reference(transformers.PegasusTokenizer, files_of("pegasus"), tmp_path)
    special = ["</s>", "<mask_1>", " <mask_2>", "<unk>", "<unk_7>"]
    equal(
        ours, as_on_the_hub(theirs, files_of("pegasus")["spiece.model"]), foreign.strings(special=special, without=ODD)
    )
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    assert ours.size == len(theirs)
    assert (ours.id_of("<mask_1>"), ours.id_of("<unk_2>"), ours.id_of("<unk>")) == (2, 4, 105)


@pytest.mark.parametrize("name", ["mbart", "mbart50"])
def test_mbart(name, tmp_path):
    ours = opened(name, **ROMANIAN)[0]
    kind = {"mbart": transformers.MBartTokenizer, "mbart50": transformers.MBart50Tokenizer}[name]
    theirs = reference(kind, files_of(name), tmp_path, src_lang="en_XX", tgt_lang="ro_RO")
    special = ["</s>", "<mask>", "fr_XX", "<unk>"]
    as_on_the_hub(theirs, files_of(name)["sentencepiece.bpe.model"])
    equal(ours, theirs, foreign.strings(special=special, without=ODD))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    assert ours.encode("a <mask>fr_XX</s>").ids == tuple(
        theirs("a <mask>fr_XX</s>", add_special_tokens=False).input_ids
    )
    romanian = theirs.convert_tokens_to_ids("ro_RO")
    around = ours.wrapping
    assert (around.start, around.forced) == ((romanian, None) if name == "mbart" else (None, romanian))


def test_nllb(tmp_path):
    ours = opened("nllb", **FRENCH)[0]
    theirs = reference(transformers.NllbTokenizer, files_of("nllb"), tmp_path)
    as_on_the_hub(theirs, files_of("nllb")["sentencepiece.bpe.model"])
    equal(ours, theirs, foreign.strings(special=["</s>", "<pad>", "<unk>"], without=ODD))
    # Rebuilt from this file alone theirs knows no languages; that they follow the pieces is what the real ids say.
    n_pieces = len(foreign.pieces_of(files_of("nllb")["sentencepiece.bpe.model"]))
    assert languages.NLLB.index("eng_Latn") == 256_047 - 256_001
    assert (n_pieces + 1 + languages.NLLB.index("eng_Latn"),) == ours.wrapping.before
    assert ours.wrapping.forced == ours.id_of("fra_Latn") == n_pieces + 1 + 256_057 - 256_001
    assert ours.id_of("zho_Hans") - ours.id_of("eng_Latn") == 256_200 - 256_047
    assert ours.id_of("<mask>") - ours.id_of("eng_Latn") == 256_203 - 256_047
    legacy = opened("nllb", legacy=True, **FRENCH)[0].wrapping
    assert (legacy.before, legacy.after) == ((), (2, ours.id_of("eng_Latn")))


def test_m2m100(tmp_path):
    ours = opened("m2m100", **FRENCH_100)[0]
    theirs = reference(transformers.M2M100Tokenizer, files_of("m2m100"), tmp_path, src_lang="en", tgt_lang="fr")
    equal(ours, theirs, foreign.strings(special=["</s>", "<pad>", "<unk>"]))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    assert ours.wrapping.forced == theirs.get_lang_id("fr")
    assert ours.id_of("__en__") - ours.id_of("__af__") == 128_022 - 128_004


def test_gpt2(tmp_path):
    ours = opened("gpt2")[0]
    theirs = reference(transformers.GPT2Tokenizer, files_of("gpt2"), tmp_path)
    equal(ours, theirs, foreign.strings(special=["<|endoftext|>"]))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids


@pytest.mark.parametrize("leading", [False, True])
def test_roberta_and_bart(leading, tmp_path):
    ours = opened("roberta", leading_space=leading)[0]
    theirs = reference(
        transformers.RobertaTokenizer, files_of("roberta"), tmp_path, config={"add_prefix_space": leading}
    )
    # The mask takes the space before it, as in the files of the hub; rebuilt theirs forgets that.
    theirs._tokenizer.add_special_tokens([tokenizers.AddedToken("<mask>", lstrip=True, special=True)])
    equal(ours, theirs, foreign.strings(special=["<s>", "</s>", "<mask>", "<pad>", "<unk>"]))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids


@pytest.mark.parametrize("lower_case", [True, False])
def test_bert(lower_case, tmp_path):
    files = foreign.word_pieces(lower_case=lower_case)
    ours = Vocabularies("bert", Options(lower_case=lower_case), files).open()[0]
    theirs = reference(transformers.BertTokenizer, files, tmp_path, config={"do_lower_case": lower_case})
    equal(ours, theirs, foreign.strings(special=["[MASK]", "[SEP]", "[UNK]"], without=foreign.newer_than_theirs()))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    long = "fox" * 34
    assert [ours.encode(text).pieces for text in (long, long[:100])] == [(long,), tuple(theirs.tokenize(long[:100]))]


def test_byt5():
    ours = opened("byt5")[0]
    theirs = transformers.ByT5Tokenizer()
    equal(ours, theirs, foreign.strings(special=["</s>", " <pad> ", "<extra_id_3>"]))
    assert wrapped(ours, "the fox") == theirs("the fox").input_ids
    assert ours.encode("é a").pieces == ("<0xC3>", "<0xA9>", SPACE_MARK, "a")


def test_pieces_over_bytes_are_written_for_people():
    ours = opened("gpt2")[0]
    assert ours.encode("the fox").pieces[0] == "the"
    assert "".join(ours.encode("a fox's lake").pieces).replace(SPACE_MARK, " ") == "a fox's lake"
    assert ours.encode("\U0001f98a").pieces == ("<0xF0>", "<0x9F>", "<0xA6>", "<0x8A>")
    assert ours.encode(SPACE_MARK).pieces == ("<0xE2>", "<0x96>", "<0x81>")  # it says that there was no space
    assert ours.id_of(f"{SPACE_MARK}a") is not None


def test_what_is_unknown_is_shown():
    for name, options in (("bert", {}), ("t5", {}), ("marian", {}), ("mbart", ROMANIAN), ("m2m100", FRENCH_100)):
        ours = opened(name, **options)[0]
        found = ours.encode("the 狐 fox")
        place = next(n for n, piece in enumerate(found.pieces) if "狐" in piece)
        assert ours.piece(found.ids[place]) in ("[UNK]", "<unk>")
        assert ours.is_special(found.ids[place])


@pytest.mark.parametrize("name", ["mbart", "mbart50", "nllb", "m2m100"])
def test_a_family_that_needs_languages_lists_them(name):
    asked = {"nllb": "eng_Latn", "m2m100": "en"}.get(name, "en_XX")
    for options in ({}, {"source_language": asked}, {"target_language": asked}):
        with pytest.raises(TokenizerError, match=f"needs both languages; choose from .*{asked}"):
            opened(name, **options)
    with pytest.raises(TokenizerError, match=f"does not have the language 'xx'; choose from .*{asked}"):
        opened(name, source_language="xx", target_language=asked)


def test_raw_ids():
    ours, target = Vocabularies("raw", Options(size=20, target_size=9, special_ids=(0, 1))).open()
    assert (ours.size, target.size) == (20, 9)
    found = ours.encode("12 7, 5 fox 20 -1 03")
    assert (found.ids, found.pieces, found.unread) == ((12, 7, 5), ("12", "7", "5"), ("fox", "20", "-1", "03"))
    assert ours.decode((1, 12, 7, 0)) == "12 7"
    assert [ours.id_of("12"), ours.id_of("fox"), ours.is_special(0)] == [12, None, True]
    assert "This model has no tokenizer" in ours.notes[0]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in ("json", "raw")])
def test_what_every_tokenizer_can_do(name):
    options = {"mbart": ROMANIAN, "mbart50": ROMANIAN, "nllb": FRENCH, "m2m100": FRENCH_100}.get(name, {})
    plain = opened(name, **options)[0].size
    for ours in opened(name, size=plain + 3, **options):
        assert ours.size == len(ours.pieces) == plain + 3
        assert all(ours.is_special(i) for i in range(plain, plain + 3))
        assert all(ours.pieces[ours.id_of(piece)] == piece for piece in ours.pieces)
        assert ours.encode("").ids == ()
        for i in (-1, ours.size):
            for method in (ours.piece, ours.is_special, lambda i, ours=ours: ours.decode([i])):
                with pytest.raises(TokenizerError, match="outside the vocabulary"):
                    method(i)
    with pytest.raises(TokenizerError, match=f"has {plain:,} pieces, but the model's embedding table has only 3 rows"):
        opened(name, size=3, **options)


def test_options_of_a_tokenizer_config():
    content = {"do_lower_case": False, "legacy_behaviour": True, "extra_ids": 0, "model_max_length": 1e30}
    found = options_of_config({"tokenizer_config.json": json.dumps(content).encode()})
    assert found == Options(lower_case=False, legacy=True, extra_ids=0)
    assert options_of_config({}) == Options()
    with pytest.raises(TokenizerError, match=r"tokenizer_config.json: lower_case: found 'no', expected true or false"):
        options_of_config({"tokenizer_config.json": b'{"do_lower_case": "no"}'})


def test_the_own_tokenizer_is_one_of_them():
    own = Tokenizer(foreign.sentencepiece_model())
    assert (own.continuation, own.notes, own.wrapping.before) == ("", (), ())
