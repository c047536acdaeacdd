"""Tokenizer options that vocabulary files lack: sizes, added tokens, `tokenizer_config.json`, language codes.

`options_of_config` reads some of them from a `tokenizer_config.json` of Hugging Face's transformers. Pieces may be
added to a vocabulary after it was learned, such as `[PAD]` to GPT-2's: folders list them there
("added_tokens_decoder"), older ones in added_tokens.json (piece -> id), with the special ones in
special_tokens_map.json.

A multilingual family knows its languages in the order of their ids. A code is one of ISO 639, usually followed by a
script (ISO 15924) or a country: `zho_Hans`, `pt_XX`. English names are in a data file.

Sources: Hugging Face's tokenizers, "added tokens"; for the order that ids of languages follow: Liu et al.,
"Multilingual Denoising Pre-training" (2020) for mBART; Tang et al., "Multilingual Translation with Extensible
Multilingual Pretraining" (2020) for mBART-50; Fan et al., "Beyond English-Centric Multilingual Machine Translation"
(2020) for M2M100; NLLB Team, "No Language Left Behind" (2022).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, get_type_hints

from glassformer.extensions.tokenizers.vocabulary import MAX_CHARACTERS, Files, Way, json_record, within
from transformer.errors import TokenizerError, shown
from transformer.i18n import Sentence, say
from transformer.text.sentencepiece_check import MAX_PIECES

CONFIG, LIST, MAP = "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json"
FILES = (CONFIG, LIST, MAP)
MAX_ADDED = 5_000
_DECODER, _SEVERAL = "added_tokens_decoder", ("additional_special_tokens", "extra_special_tokens")
MAX_CODE = 40  # characters of a language


@dataclass(frozen=True, kw_only=True)
class Added(Way):
    """A piece that was added to a vocabulary."""

    content: str  # the piece, as typed
    id: int  # its row
    special: bool = False  # has no text of its own

    def __post_init__(self) -> None:
        with within(say("the added token {piece}", piece=shown(self.content))):
            _check_values(self)

    def said(self) -> dict[str, Any]:
        """The fields that are not at their defaults, for JSON."""
        values = {"content": self.content, "id": self.id, "special": self.special, **asdict(self)}
        return {name: value for name, value in values.items() if value is not False}


def added_from(listed: object) -> tuple[Added, ...]:
    """Read a list of what `said` gives; a TokenizerError begins with "added"."""
    if not isinstance(listed, list | tuple) or len(listed) > MAX_ADDED:
        raise TokenizerError(
            "added: found {found}, expected a list of at most {most:,} tokens.", found=shown(listed), most=MAX_ADDED
        )
    return tuple(_one(record, where="added") for record in listed)


def added_of_folder(files: Files) -> tuple[Added, ...]:
    """Added pieces of a folder's files, in the order of the ids; a TokenizerError begins with the file's name."""
    records = {name: json_record(files, name) for name in FILES if name in files}
    decoder = records.get(CONFIG, {}).get(_DECODER)
    if decoder is not None:
        found, file = list(_of_decoder(decoder)), CONFIG
    else:
        special = {name for record in records.values() for name in _special(record)}
        found, file = list(_of_list(records.get(LIST, {}), special)), LIST
    if len(found) > MAX_ADDED:
        raise TokenizerError(
            "{file}: has {n:,} added tokens; the limit is {most:,}.", file=file, n=len(found), most=MAX_ADDED
        )
    rows: dict[int, Added] = {}
    for one in found:
        other = rows.setdefault(one.id, one)
        if other is not one:
            raise TokenizerError(
                "{file}: {piece} has the id {i}, which {other} already has.",
                file=file,
                piece=shown(one.content),
                i=one.id,
                other=shown(other.content),
            )
    return tuple(rows[i] for i in sorted(rows))


def _of_decoder(decoder: object) -> Iterator[Added]:
    known = {field.name for field in fields(Added)}
    for i, record in _object(decoder, _DECODER).items():
        values = {name: value for name, value in _object(record, f"{_DECODER}.{i[:20]}").items() if name in known}
        number = int(i) if i.isascii() and i.isdecimal() and len(i) < len(str(MAX_PIECES)) + 1 else i
        yield _one({**values, "id": number}, where=CONFIG)


def _object(found: object, field: str) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise TokenizerError(
            "{file}: {field}: expected a JSON object, found {found}.", file=CONFIG, field=field, found=shown(found)
        )
    return found


def _of_list(listed: Mapping[str, Any], special: set[str]) -> Iterator[Added]:
    for piece, i in listed.items():
        is_special = piece in special
        yield _one({"content": piece, "id": i, "special": is_special, "normalized": not is_special}, where=LIST)


def _one(record: object, *, where: str) -> Added:
    with within(where):
        if not isinstance(record, Mapping):
            raise TokenizerError("expected a JSON object, found {found}.", found=shown(record))
        for name in ("content", "id"):
            if name not in record:
                raise TokenizerError("an added token has no {field}.", field=name)
        _check_known(record, Added)
        return Added(**record)


def _check_known(record: Mapping[str, Any], kind: "type[Added | Options]") -> None:
    known = {field.name for field in fields(kind)}
    for name in record:
        if name not in known:
            raise TokenizerError("{field}: is not a known option.", field=shown(name))


def _check_values(record: "Added | Options") -> None:
    for name, kind in get_type_hints(type(record)).items():
        fits, expected = _CHECKS[kind]
        if not fits(value := getattr(record, name)):
            raise TokenizerError(
                "{field}: found {found}, expected {expected}.", field=name, found=shown(value), expected=expected
            )


def _special(record: Mapping[str, Any]) -> Iterator[str]:
    """The special pieces that a special_tokens_map.json or a tokenizer_config.json names."""
    for key, value in record.items():
        if key in _SEVERAL and isinstance(value, Sequence) and not isinstance(value, str):
            yield from (name for one in value if (name := _name(one)) is not None)
        elif key.endswith("_token") and (name := _name(value)) is not None:
            yield name


def _name(value: object) -> str | None:
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else None


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a vocabulary's files do not contain; a TokenizerError begins with the wrong option's name."""

    size: int | None = None  # rows of the model, if more than pieces; None for as many
    target_size: int | None = None  # the same of the target, if it has its own vocabulary
    source_language: str | None = None  # for families that need it, in the family's codes
    target_language: str | None = None  # for families that need it, in the family's codes
    legacy: bool = False  # the source's language comes after the text (NLLB before April 2023)
    # The source's language comes after the text, and the target begins with its own (mBART-25).
    language_starts: bool = False
    extra_ids: int = 100  # rows after the pieces, for the gaps that a T5 model fills
    lower_case: bool = True  # A BERT vocabulary is uncased
    strip_accents: bool | None = None  # None for "if it is lower-case"
    chinese: bool = True  # A BERT vocabulary treats each Chinese character as a word
    leading_space: bool | None = None  # reads a text as if it began with a space; None for the default
    begin: bool | None = None  # whether a text gets the begin piece; None for the default
    end: bool | None = None  # whether a text gets the end piece; None for the default
    added: tuple[Added, ...] = ()  # pieces that were added to the learned vocabulary
    special_ids: tuple[int, ...] = ()  # without a tokenizer: ids without a text of their own

    def __post_init__(self) -> None:
        _check_values(self)

    def said(self) -> dict[str, Any]:
        """The options that are not at their defaults, for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {name: value for name, value in values.items() if value != getattr(_USUAL, name)}
        return chosen | ({"added": [one.said() for one in self.added]} if self.added else {})


def options_from(record: Mapping[str, Any]) -> Options:
    """Options of parsed JSON; a TokenizerError begins with the name of the unknown or invalid one."""
    _check_known(record, Options)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name != "added"
    }
    return Options(**values, added=added_from(record.get("added", ())))


# Option -> its key in a tokenizer_config.json.
_CONFIG = {
    "lower_case": "do_lower_case",
    "strip_accents": "strip_accents",
    "chinese": "tokenize_chinese_chars",
    "leading_space": "add_prefix_space",
    "legacy": "legacy_behaviour",
    "extra_ids": "extra_ids",
    "begin": "add_bos_token",
    "end": "add_eos_token",
}


def options_of_config(files: Files) -> Options:
    """Options from tokenizer_config.json and the lists of added pieces, without what has no meaning here."""
    added = added_of_folder(files)
    if CONFIG not in files:
        return Options(added=added)
    record = json_record(files, CONFIG)
    said = {name: record[key] for name, key in _CONFIG.items() if record.get(key) is not None}
    with within(CONFIG):
        return replace(options_from(said), added=added)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_PIECES  # excludes bool


def _is_text(value: object, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most


def _are_ids(value: object) -> bool:
    return isinstance(value, tuple) and len(value) <= MAX_PIECES and all(map(_is_count, value))


_NUMBER = say("a whole number from 0 to {most:,}", most=MAX_PIECES)
_CHECKS: dict[Any, tuple[Callable[[object], bool], Sentence]] = {
    str: (partial(_is_text, most=MAX_CHARACTERS), say("a string of 1 to {most} characters", most=MAX_CHARACTERS)),
    int: (_is_count, _NUMBER),
    int | None: (lambda value: value is None or _is_count(value), _NUMBER),
    str | None: (lambda value: value is None or _is_text(value, MAX_CODE), say("a language code")),
    bool: (lambda value: type(value) is bool, say("true or false")),
    bool | None: (lambda value: value is None or type(value) is bool, say("true, false or null")),
    tuple[int, ...]: (_are_ids, say("a list of ids")),
    tuple[Added, ...]: (lambda value: isinstance(value, tuple), say("a list of tokens")),  # each checks itself
}
_USUAL = Options()


_SEVERAL_SCRIPTS = frozenset({"ace", "arb", "bjn", "kas", "knc", "min", "taq", "zho"})


def language_name(code: str) -> str:
    """The English name of a family's code; the code itself if it is none of these.

    Example:
        >>> language_name("deu_Latn"), language_name("zho_Hans"), language_name("pt_XX")
        ('German', 'Chinese, simplified', 'Portuguese')
    """
    language, _, behind = code.partition("_")
    names = _table("language_names.tsv")
    name = names.get(language)
    if name is None:
        return code
    script = names.get(behind) if language in _SEVERAL_SCRIPTS else None
    return name if script is None else f"{name}, {script}"


@cache
def _table(name: str) -> dict[str, str]:
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


# Of each family, in the order of the ids.
LANGUAGE_CODES = {family: tuple(codes.split()) for family, codes in _table("language_codes.tsv").items()}
