"""Constructors of tokenizers by family (Marian, T5, NLLB, GPT-2, LLaMA, BERT, ...), and `Vocabularies` as stored.

One function per family takes a folder's files by name and returns the tokenizers of source and target; one object if
they are alike. `Options` has what the files do not contain. Which family a folder belongs to is decided elsewhere.

A checkpoint folder of this program has the family's own files under their own names, and `vocabulary.json`, with the
family and the options:

    {"family": "nllb", "options": {"source_language": "eng_Latn", "target_language": "fra_Latn"}}

Sources: Hugging Face's transformers 5.23, with which the tests compare every family; for the algorithms see the
modules `subword_tokenizers`, `tokenizers_library` and `vocabulary`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from glassformer.extensions.tokenizers import subword_tokenizers as subword
from glassformer.extensions.tokenizers import tokenizers_library, vocabulary
from glassformer.extensions.tokenizers.options import LANGUAGE_CODES, Options, options_from
from glassformer.extensions.tokenizers.vocabulary import Files, ListTokenizer, VocabularyTable, padded, unused, within
from transformer.checkpoint.tokenizer_files import MAX_JSON, MAX_TOKENIZER, VOCABULARY, Named
from transformer.errors import TokenizerError, shown
from transformer.text import sentencepiece_check
from transformer.text.tokenizer import NO_WRAPPING, AnyTokenizer, RawIds, Tokenizer, Wrapping

Two = tuple[AnyTokenizer, AnyTokenizer]
Place = Literal["before", "after", "start"]  # of a language

FAIRSEQ = ("<s>", "<pad>", "</s>", "<unk>")  # the first rows of models trained with fairseq
PEGASUS = ("<mask_1>", "<mask_2>", *(f"<unk_{n}>" for n in range(2, 103)))  # rows used in training
TARGET_JSON = "target_tokenizer.json"  # of a target with its own vocabulary
TARGET_LINES, TARGET_IDS = "target_vocab.txt", "target_vocab.json"
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LARGE = {tokenizers_library.FILE: MAX_JSON, TARGET_JSON: MAX_JSON}


def marian(files: Files, options: Options) -> Two:
    """Marian: pieces from source.spm and target.spm, ids from vocab.json alone, then `</s>`."""
    source, target = sentencepiece(files, "source.spm"), sentencepiece(files, "target.spm")
    names, file = vocabulary.id_table(files, "vocab.json"), "vocab.json"
    src = _of_vocabulary(names, file, source, target, options)
    if "target_vocab.json" in files:
        names, file = vocabulary.id_table(files, "target_vocab.json"), "target_vocab.json"
        options = replace(options, size=options.target_size or options.size)
    return src, _of_vocabulary(names, file, target, target, options)


def _of_vocabulary(
    names: Sequence[str], file: str, splitting: Tokenizer, joining: Tokenizer, options: Options
) -> subword.MappedTokenizer:
    ids = {name: i for i, name in enumerate(names)}
    unknown = id_of(ids, "<unk>", file)
    after = () if options.end is False else (id_of(ids, "</s>", file),)
    typed: dict[str, int] = {name: ids[name] for name in FAIRSEQ[1:] if name in ids}
    spoken = [name for name in names if subword.LANGUAGE.fullmatch(name)]
    before: tuple[int, ...] = ()
    if options.target_language and spoken:
        known = [name[2:-2] for name in spoken]
        before = (_language(options.target_language, known, [ids[name] for name in spoken]),)
    languages = [ids[name] for name in spoken]
    table = table_of(names, options, typed=typed, untyped=languages, wrapping=Wrapping(before, after))
    return subword.MappedTokenizer(
        table, splitting, lambda _, piece: ids.get(piece, unknown), joining=joining, language_first=True
    )


def t5(files: Files, options: Options) -> Two:
    """T5, mT5: the ids of spiece.model unchanged, then `<extra_id_99>` to `<extra_id_0>`; ends with `</s>`."""
    model = sentencepiece(files, "spiece.model")
    extra = [f"<extra_id_{k}>" for k in reversed(range(options.extra_ids))]
    names = [*model.pieces, *(name for name in extra if model.id_of(name) is None)]
    typed = {names[i]: i for i in (*special_of(model), *range(model.size, len(names)))}
    table = table_of(names, options, typed=typed, wrapping=Wrapping(after=(id_in(model, "</s>"),)))
    return _both(subword.MappedTokenizer(table, model, lambda i, _: i))


def pegasus(files: Files, options: Options) -> Two:
    """Pegasus: the first two ids of spiece.model unchanged, then 103 rows for its training; ends with `</s>`."""
    model = sentencepiece(files, "spiece.model")
    names = [*model.pieces[:2], *PEGASUS, *model.pieces[2:]]
    offset = len(PEGASUS)
    special = (*(i if i < 2 else i + offset for i in special_of(model)), *range(2, 2 + offset))
    typed, wrapping = {names[i]: i for i in special}, Wrapping(after=(id_in(model, "</s>"),))
    table = table_of(names, options, typed=typed, mask="<mask_2>", wrapping=wrapping)
    return _both(subword.MappedTokenizer(table, model, lambda i, _: i if i < 2 else i + offset))


def mbart(files: Files, options: Options) -> Two:
    """mBART of 25 languages: `X </s> language`; the target begins with its language."""
    return _fairseq(files, options, "mbart", place="start")


def mbart50(files: Files, options: Options) -> Two:
    """mBART-50: `language X </s>`; the target's language is written first."""
    return _fairseq(files, options, "mbart50", place="before")


def nllb(files: Files, options: Options) -> Two:
    """NLLB: `language X </s>`, in checkpoints of before April 2023 `X </s> language`."""
    return _fairseq(files, options, "nllb", place="after" if options.legacy else "before")


def _fairseq(files: Files, options: Options, family: str, *, place: Place) -> Two:
    """SentencePiece's ids plus one, except for the first pieces; then languages and `<mask>`."""
    model, codes = sentencepiece(files, "sentencepiece.bpe.model"), LANGUAGE_CODES[family]
    names = [*FAIRSEQ, *model.pieces[3:], *codes, "<mask>"]
    first = model.size + 1
    typed = {name: i for i, name in enumerate(names) if i < len(FAIRSEQ) or i >= first}
    wrapping = _around(_asked(options, codes, range(first, first + len(codes))), place)
    table = table_of(names, options, typed=typed, mask="<mask>", wrapping=wrapping)
    return _both(subword.MappedTokenizer(table, model, lambda i, _: i + 1 if i >= 3 else 3))


def m2m100(files: Files, options: Options) -> Two:
    """M2M100: pieces of sentencepiece.bpe.model, ids from vocab.json, then languages; `language X </s>`."""
    model = sentencepiece(files, "sentencepiece.bpe.model")
    names = vocabulary.id_table(files, "vocab.json")
    ids = {name: i for i, name in enumerate(names)}
    unknown, end = (id_of(ids, name, "vocab.json") for name in ("<unk>", "</s>"))
    codes = LANGUAGE_CODES["m2m100"]
    every = [*names, *(f"__{code}__" for code in codes)]
    typed = {name: i for i, name in enumerate(every) if i >= len(names) or name in FAIRSEQ}
    wrapping = _around(_asked(options, codes, range(len(names), len(every))), "before", end=end)
    table = table_of(every, options, typed=typed, wrapping=wrapping)
    return _both(subword.MappedTokenizer(table, model, lambda _, piece: ids.get(piece, unknown), joining=model))


def gpt2(files: Files, options: Options) -> Two:
    """GPT-2: vocab.json and merges.txt; nothing is put around a text."""
    return _both(_byte_pairs(files, options, ("<|endoftext|>",), wrapped=False))


def roberta(files: Files, options: Options) -> Two:
    """RoBERTa, BART: vocab.json and merges.txt; `<s> X </s>`."""
    return _both(_byte_pairs(files, options, (*FAIRSEQ, "<mask>"), wrapped=True))


def _byte_pairs(files: Files, options: Options, special: Sequence[str], *, wrapped: bool) -> subword.BytePairTokenizer:
    names = vocabulary.id_table(files, "vocab.json")
    subword.check_bytes(names, "vocab.json")
    pairs = vocabulary.merges(files, "merges.txt", names)
    ids = {name: i for i, name in enumerate(names)}
    typed = {name: ids[name] for name in special if name in ids}
    as_written = {*typed, *(one.content for one in options.added), *map(unused, range(len(names)))}
    shown_names = [name if name in as_written else subword.for_people(subword.as_bytes(name)) for name in names]
    start, end = (id_of(ids, name, "vocab.json") if wrapped else 0 for name in ("<s>", "</s>"))
    wrapping = Wrapping((start,), (end,)) if wrapped else _around_gpt2(ids, options)
    table = table_of(shown_names, options, typed=typed, mask="<mask>", wrapping=wrapping)
    names = [*names, *(table.pieces[i] for i in range(len(names), len(table.pieces)))]
    return subword.BytePairTokenizer(table, names, pairs, leading_space=bool(options.leading_space))


def _around_gpt2(ids: Mapping[str, int], options: Options) -> Wrapping:
    if not (options.begin or options.end):
        return NO_WRAPPING
    both = (id_of(ids, "<|endoftext|>", "vocab.json"),)
    return Wrapping(both if options.begin else (), both if options.end else ())


def llama(files: Files, options: Options) -> Two:
    """LLaMA 2, Mistral, Gemma without a tokenizer.json: the ids of tokenizer.model unchanged, after `<s>`."""
    model = sentencepiece(files, "tokenizer.model")
    typed = {model.pieces[i]: i for i in special_of(model)}
    first = next((typed[name] for name in ("<s>", "<bos>") if name in typed), None)
    last = next((typed[name] for name in ("</s>", "<eos>") if name in typed), None)
    before = (first,) if first is not None and options.begin is not False else ()
    after = (last,) if last is not None and options.end else ()
    table = table_of(model.pieces, options, typed=typed, wrapping=Wrapping(before, after))
    return _both(subword.UnchangedTokenizer(table, files["tokenizer.model"], leading_space=options.leading_space))


def bert(files: Files, options: Options) -> Two:
    """BERT, DistilBERT: vocab.txt; `[CLS] X [SEP]`."""
    names = vocabulary.listed(files, "vocab.txt")
    ids = {name: i for i, name in enumerate(names)}
    typed = {name: ids[name] for name in BERT if name in ids}
    unknown, first, last = (id_of(ids, name, "vocab.txt") for name in ("[UNK]", "[CLS]", "[SEP]"))
    cleaning = subword.Cleaning(options.lower_case, options.strip_accents, options.chinese)
    table = table_of(names, options, typed=typed, wrapping=Wrapping((first,), (last,)))
    return _both(subword.WordPieceTokenizer(table, names, unknown=unknown, cleaning=cleaning))


def plain_list(files: Files, options: Options) -> Two:
    """A list of characters or words, and another of the target where it has its own; nothing is put around a text."""
    source = _listed(vocabulary.pieces_of(files), options)
    if not {TARGET_LINES, TARGET_IDS} & files.keys():
        return _both(source)
    names = vocabulary.pieces_of(files, TARGET_LINES, TARGET_IDS)
    return source, _listed(names, replace(options, size=options.target_size or options.size))


def _listed(names: Sequence[str], options: Options) -> ListTokenizer:
    ids = {name: i for i, name in enumerate(names)}
    typed = {name: i for name, i in ids.items() if name in vocabulary.SPECIAL}
    unknown = next((ids[name] for name in vocabulary.CALLED["unk_id"] if name in ids), None)
    table = table_of(names, options, typed=typed)
    return ListTokenizer(table, by_words=vocabulary.by_words(names), unknown=unknown)


def byt5(_: Files, options: Options) -> Two:
    """ByT5: bytes, and no file; ends with `</s>`."""
    return _both(subword.ByteTokenizer(options.size))


def any_json(files: Files, options: Options) -> Two:
    """A tokenizer.json of any family, read by the library `tokenizers`; a second one if the target has its own.

    Its template knows at most one language. If both languages are given, they go around the text instead.
    """
    made = tokenizers_library.LibraryTokenizer(vocabulary.file(files, tokenizers_library.FILE), options.size)
    if TARGET_JSON in files:
        size = options.target_size or options.size
        return made, tokenizers_library.LibraryTokenizer(vocabulary.file(files, TARGET_JSON), size)
    if not (options.source_language or options.target_language):
        return _both(made)
    codes = {name.strip("_"): i for name, i in made.languages().items()}
    asked = _asked(options, list(codes), list(codes.values()))
    end = made.id_of("</s>")
    place: Place = "start" if options.language_starts else "after" if options.legacy else "before"
    return _both(made.wrapped_in(_around(asked, place, end=2 if end is None else end)))


def raw_ids(_: Files, options: Options) -> Two:
    """No tokenizer: pieces are the numbers of their rows."""
    if options.size is None:
        raise TokenizerError(
            "size: is missing; for a model without a tokenizer, give the number of rows of its embedding table."
        )
    source = RawIds(options.size, options.special_ids)
    if options.target_size in (None, options.size):
        return _both(source)
    return source, RawIds(options.target_size or 0, options.special_ids)


def _both(tokenizer: AnyTokenizer) -> Two:
    return tokenizer, tokenizer


def _asked(options: Options, codes: Sequence[str], rows: Sequence[int]) -> tuple[int, int]:
    if not options.source_language or not options.target_language:
        raise TokenizerError(
            "source_language, target_language: this family of models needs both languages; choose from {languages}.",
            languages=", ".join(codes),
        )
    return _language(options.source_language, codes, rows), _language(options.target_language, codes, rows)


def _language(code: str, codes: Sequence[str], rows: Sequence[int]) -> int:
    if code not in codes:
        raise TokenizerError(
            "this family of models does not have the language {found}; choose from {languages}.",
            found=shown(code),
            languages=", ".join(codes),
        )
    return rows[codes.index(code)]


def _around(asked: tuple[int, int], place: Place, *, end: int = 2) -> Wrapping:
    source, target = asked
    if place == "before":
        return Wrapping((source,), (end,), forced=target)
    if place == "after":
        return Wrapping((), (end, source), forced=target)
    return Wrapping((), (end, source), start=target)


def table_of(
    names: Sequence[str],
    options: Options,
    *,
    typed: Mapping[str, int],
    untyped: Iterable[int] = (),
    mask: str = "",
    wrapping: Wrapping = NO_WRAPPING,
) -> VocabularyTable:
    """The rows: the pieces of the files, added pieces, and names for rows without a piece.

    `typed` are the pieces without text of their own that are found in typed text, of which `mask` strips the spaces
    before it, `untyped` the rows of others. Refuses an added piece that conflicts with the files, and too few rows.
    """
    pieces = list(names)
    own, typed = {*typed.values(), *untyped}, dict(typed)
    ways: dict[str, vocabulary.Way] = {mask: vocabulary.Way(lstrip=True)} if mask else {}
    for one in options.added:
        pieces += (unused(i) for i in range(len(pieces), one.id + 1))
        if one.id >= len(names):
            pieces[one.id] = one.content
        elif names[one.id] != one.content:
            raise TokenizerError(
                "the added token {piece} has the id {i}, which belongs to {other} in the vocabulary; one of the "
                "two files belongs to another model.",
                piece=shown(one.content),
                i=one.id,
                other=shown(names[one.id]),
            )
        typed[one.content], ways[one.content] = one.id, one
        own |= {one.id} if one.special else set()
    added = {one.id for one in options.added}
    every = padded(pieces, options.size)
    own |= {i for i in range(len(names), len(every)) if i not in added}
    own |= {i for i, name in enumerate(names) if name == unused(i)}
    return VocabularyTable(every, own, typed, ways, wrapping)


def sentencepiece(files: Files, name: str) -> Tokenizer:
    """A SentencePiece model among the files, tested first; TokenizerError if it is missing or unusable."""
    model = vocabulary.file(files, name)
    with vocabulary.within(name):
        sentencepiece_check.check(model)
        return Tokenizer(model)


def special_of(model: Tokenizer) -> set[int]:
    """The ids of pieces without a text of their own."""
    return {i for i in range(model.size) if model.is_special(i)}


def id_of(ids: Mapping[str, int], name: str, file: str) -> int:
    """The row of a piece that a family requires; TokenizerError if there is none."""
    if name not in ids:
        raise TokenizerError(
            "{file}: has no token {name}, which this family of models needs.", file=file, name=shown(name)
        )
    return ids[name]


def id_in(model: Tokenizer, name: str) -> int:
    """The same of a SentencePiece model."""
    return id_of({piece: i for i, piece in enumerate(model.pieces)}, name, "spiece.model")


Make = Callable[[Files, Options], Two]


@dataclass(frozen=True)
class Family:
    """How a family's tokenizers are made."""

    make: Make  # the family's function
    files: tuple[str, ...] = ()  # required
    may: tuple[str, ...] = ()  # optional

    def there(self, names: Iterable[str]) -> list[str]:
        """Its files among some names, the required ones first."""
        names = {*names}
        return [name for name in (*self.files, *self.may) if name in names]


_ONE_MODEL, _FAIRSEQ_MODEL = ("spiece.model",), ("sentencepiece.bpe.model",)
_PAIRS = ("vocab.json", "merges.txt")
FAMILIES: Mapping[str, Family] = {
    "marian": Family(marian, ("source.spm", "target.spm", "vocab.json"), ("target_vocab.json",)),
    "t5": Family(t5, _ONE_MODEL),
    "pegasus": Family(pegasus, _ONE_MODEL),
    "mbart": Family(mbart, _FAIRSEQ_MODEL),
    "mbart50": Family(mbart50, _FAIRSEQ_MODEL),
    "nllb": Family(nllb, _FAIRSEQ_MODEL),
    "m2m100": Family(m2m100, (*_FAIRSEQ_MODEL, "vocab.json")),
    "gpt2": Family(gpt2, _PAIRS),
    "roberta": Family(roberta, _PAIRS),
    "llama": Family(llama, ("tokenizer.model",)),
    "bert": Family(bert, ("vocab.txt",)),
    "byt5": Family(byt5),
    "json": Family(any_json, (tokenizers_library.FILE,), (TARGET_JSON,)),
    "list": Family(plain_list, may=(vocabulary.LINES, vocabulary.IDS, TARGET_LINES, TARGET_IDS)),
    "raw": Family(raw_ids),
}
FILE_NAMES = frozenset(name for family in FAMILIES.values() for name in (*family.files, *family.may))


@dataclass(frozen=True)
class Vocabularies:
    """Tokenizers as stored: family, options and files."""

    family: str  # a key of `FAMILIES`
    options: Options = field(default_factory=Options)  # what the files do not say
    # The required ones, and the optional ones that exist.
    files: Files = field(default_factory=dict)

    def open(self) -> Two:
        """Make the tokenizers; a TokenizerError begins with the name of the unusable file or option."""
        return FAMILIES[self.family].make(self.files, self.options)

    def stored(self) -> dict[str, bytes]:
        """The files to write, `vocabulary.json` among them."""
        record = {"family": self.family, "options": self.options.said()}
        own = {name: self.files[name] for name in FAMILIES[self.family].there(self.files)}
        return {VOCABULARY: (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode(), **own}


def read_record(content: bytes) -> tuple[str, Options]:
    """The family and the options of a vocabulary.json; TokenizerError if they are unknown."""
    record = vocabulary.json_record({VOCABULARY: content}, VOCABULARY)
    if not isinstance(record.get("options", {}), dict):
        raise TokenizerError("{file}: expected a JSON object, found {found}.", file=VOCABULARY, found=shown(record))
    family = record.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise TokenizerError(
            "{file}: family: found {found}, expected one of {families}.",
            file=VOCABULARY,
            found=shown(family),
            families=", ".join(FAMILIES),
        )
    with within(VOCABULARY):
        return family, options_from(record.get("options", {}))


def limits(record: bytes, has: Callable[[str], bool]) -> dict[str, int]:
    """The files that a vocabulary.json requires or allows, if they exist, each with its largest size."""
    family = FAMILIES[read_record(record)[0]]
    return {name: LARGE.get(name, MAX_TOKENIZER) for name in (*family.files, *filter(has, family.may))}


def opened(files: Files) -> tuple[Named, Named]:
    """The tokenizers of source and target, each with the file that lists its ids; one object if they are alike."""
    family, options = read_record(files[VOCABULARY])
    source, target = Vocabularies(family, options, files).open()
    names = FAMILIES[family].there(files) or [VOCABULARY]
    of_ids = [name for name in names if name.endswith("vocab.json")] or names
    return (of_ids[0], source), (of_ids[-1], target)
