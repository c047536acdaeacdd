"""What the files of a vocabulary do not say by themselves: sizes, languages, and how a text is cleaned.

Some of it stands in a `tokenizer_config.json` of Hugging Face's transformers; `options_of_config` reads that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

from transformer.errors import TokenizerError, shown
from transformer.text import vocabulary_files
from transformer.text.added import CONFIG, Added, added_from, added_of_folder
from transformer.text.sentencepiece_check import MAX_PIECES
from transformer.text.vocabulary_files import Files
from words import Sentence, say

MAX_CODE = 40  # characters of a language


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the files of a vocabulary do not say; a TokenizerError begins with the name of a wrong one."""

    size: int | None = None  # rows of the model, where it has more than pieces; None for as many
    target_size: int | None = None  # the same of the target, where it has a vocabulary of its own
    source_language: str | None = None  # where a family needs them, by its own codes
    target_language: str | None = None  # where a family needs them, by its own codes
    legacy: bool = False  # the source's language comes after the text (NLLB of before April 2023)
    # The source's language comes after the text, and the target begins with its own (mBART of 25 languages).
    language_starts: bool = False
    extra_ids: int = 100  # rows behind the pieces for what a T5 model fills in
    lower_case: bool = True  # A BERT vocabulary is uncased
    strip_accents: bool | None = None  # whether it knows no accents either; None for "if it is uncased"
    chinese: bool = True  # A BERT vocabulary takes each Chinese character for a word
    leading_space: bool | None = None  # A text is read as if it began with a space; None for what is usual
    begin: bool | None = None  # whether a text gets the piece for its begin, or for its end; None for what is usual
    end: bool | None = None  # whether a text gets the piece for its begin, or for its end; None for what is usual
    added: tuple[Added, ...] = ()  # pieces that were added to the vocabulary after it had been learned
    special_ids: tuple[int, ...] = ()  # without a tokenizer: ids without a text of their own

    def __post_init__(self) -> None:
        kinds = get_type_hints(type(self))
        for field in fields(self):
            value = getattr(self, field.name)
            fits, expected = _CHECKS[kinds[field.name]]
            if not fits(value):
                raise TokenizerError(
                    "{field}: found {found}, expected {expected}.",
                    field=field.name,
                    found=shown(value),
                    expected=expected,
                )

    def said(self) -> dict[str, Any]:
        """What JSON says of them: what is not as usual."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {name: value for name, value in values.items() if value != getattr(_USUAL, name)}
        return chosen | ({"added": [one.said() for one in self.added]} if self.added else {})


def options_from(record: Mapping[str, Any]) -> Options:
    """Options of parsed JSON; a TokenizerError begins with the name of the one that is unknown or wrong."""
    known = {field.name for field in fields(Options)}
    for name in record:
        if name not in known:
            raise TokenizerError("{field}: there is no such option.", field=shown(name))
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items() if name != "added"
    }
    return Options(**values, added=added_from(record.get("added", ())))


# What a tokenizer_config.json calls the options that it has.
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
    """What tokenizer_config.json and the lists of added pieces say; what means nothing here is left out.

    A TokenizerError begins with the file's name.
    """
    added = added_of_folder(files)
    if CONFIG not in files:
        return Options(added=added)
    record = vocabulary_files.json_record(files, CONFIG)
    said = {name: record[key] for name, key in _CONFIG.items() if record.get(key) is not None}
    try:
        return replace(options_from(said), added=added)
    except TokenizerError as error:
        raise TokenizerError("{file}: {problem}", file=CONFIG, problem=error.sentence) from None


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_PIECES  # True is an int, too


def _is_code(value: object) -> bool:
    return value is None or (isinstance(value, str) and 0 < len(value) <= MAX_CODE)


def _are_ids(value: object) -> bool:
    return isinstance(value, tuple) and len(value) <= MAX_PIECES and all(map(_is_count, value))


_CHECKS: dict[Any, tuple[Callable[[object], bool], Sentence]] = {
    int: (_is_count, say("a number of pieces")),
    int | None: (lambda value: value is None or _is_count(value), say("a number of pieces")),
    str | None: (_is_code, say("the code of a language")),
    bool: (lambda value: type(value) is bool, say("true or false")),
    bool | None: (lambda value: value is None or type(value) is bool, say("true, false or null")),
    tuple[int, ...]: (_are_ids, say("a list of ids")),
    tuple[Added, ...]: (lambda value: isinstance(value, tuple), say("a list of pieces")),  # each checks itself
}
_USUAL = Options()
