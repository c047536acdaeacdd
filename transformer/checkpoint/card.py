"""Card of a checkpoint (`card.json`): languages, examples, references, data, licence, scores; a tolerant reader.

A card is for people, so errors in it are tolerated: a field of the wrong type is left out with a warning, an unknown
field is kept, and a missing card is an empty one. Nothing that a model computes depends on it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transformer.errors import ClauseError, shown
from transformer.files import strictjson
from transformer.i18n import ENGLISH, in_languages, say

MAX_BYTES = 200_000  # those of models here have 4,000
MAX_TEXT = 4_000  # characters of one text
MAX_ITEMS = 100  # of a list or a table

_SMOOTHING = re.compile(r"--smoothing[ =](\d*\.?\d+)(?= |$)")

TEXTS = (
    "title", "description", "source_language", "target_language", "source_code", "target_code", "data", "licence",
)  # fmt: skip
"""The fields that are texts."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What `card.json` says."""

    title: str = ""  # name of the model, for people
    description: str = ""  # what it does
    source_language: str = ""  # their names, for people
    target_language: str = ""
    source_code: str = ""  # their BCP 47 codes, such as "zh"; empty where there is none
    target_code: str = ""
    data: str = ""  # what it was trained on
    licence: str = ""  # of that data
    examples: tuple[str, ...] = ()  # sentences to try
    # What each example means in English, for people who cannot read it.
    glosses: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)  # the reference of each example
    # One record per scoring: file, sha256, the way of decoding, bleu, chrf and the like. If `measure` is "alignment
    # error rate": aer, its head, and the rates of all heads.
    scores: tuple[Mapping[str, Any], ...] = ()
    training: Mapping[str, Any] = field(default_factory=dict)  # how it was trained: command, epochs and the like
    parameters: int | None = None  # number of learned values, None when the card does not say
    sha256: Mapping[str, str] = field(default_factory=dict)  # SHA-256 of each file, hexadecimal
    # The texts in further languages, by the language's name and the field's. Those fields are sentences.
    said: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)  # the fields that are not among these

    def tried(self) -> list[str]:
        """The examples to try, without empty ones and repetitions."""
        return [example for example in dict.fromkeys(self.examples) if example.strip()]

    def reference_of(self, example: str) -> str | None:
        """The reference of an example; for a model that writes English, its meaning in English."""
        gloss = self.glosses.get(example) if self.target_code.split("-")[0] == "en" else None
        return self.references.get(example, gloss)

    def first_example(self) -> str:
        """The sentence that the app opens with; empty if there is none."""
        return next(iter(self.tried()), "")

    def attribution(self) -> str:
        """The attribution that the data's licence asks for; empty if the card has none."""
        said = self.other.get("attribution")
        return said if isinstance(said, str) else ""

    def label_smoothing(self) -> float | None:
        """The label smoothing of the training, 0 to 1; None if the card does not say it."""
        said = self.training.get("smoothing")
        if said is None:
            found = _SMOOTHING.search(str(self.training.get("command", "")))
            said = float(found[1]) if found else None
        is_number = isinstance(said, int | float) and not isinstance(said, bool)
        return float(said) if said is not None and is_number and 0 <= said < 1 else None  # False for NaN, too


def read_card(content: bytes) -> tuple[Card, tuple[str, ...]]:
    """The card in the bytes of card.json, at most `MAX_BYTES`, and a sentence for each thing that was left out."""
    try:
        record = strictjson.parse(content)
    except ClauseError as error:
        return Card(), (say("card.json was ignored: {problem}.", problem=error.sentence),)
    if not isinstance(record, dict):
        return Card(), (say("card.json was ignored: it is not a JSON object."),)
    values: dict[str, Any] = {}
    warnings = []
    for name, value in record.items():
        if name not in _READERS:
            continue
        try:
            values[name] = _READERS[name](value)
        except _WrongError as error:
            warnings.append(
                say(
                    "card.json: {name} was ignored; found {found}, expected {expected}.",
                    name=name,
                    found=shown(value),
                    expected=error.sentence,
                )
            )
    other = {name: value for name, value in record.items() if name not in _READERS}
    return Card(**_spoken(values), other=other), tuple(warnings)


def _spoken(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a card, its texts with what they are in other languages."""
    said: Mapping[str, Mapping[str, str]] = values.get("said", {})
    sentences = {}
    for name in TEXTS:
        others = {language: texts[name] for language, texts in said.items() if name in texts}
        if others and values.get(name):
            texts = {**others, ENGLISH: values[name]}
            sentences[name] = in_languages({language: _literal(text) for language, text in texts.items()})
    return values | sentences


def _literal(text: str) -> str:
    """A text as a template without values."""
    return text.replace("{", "{{").replace("}", "}}")


class _WrongError(ClauseError):
    """A field is not what was expected; the message says what that was."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise _WrongError("a string of at most {most:,} characters", most=MAX_TEXT)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise _WrongError("a list of at most {most} strings", most=MAX_ITEMS)
    return tuple(_text(item) for item in value)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MAX_ITEMS:
        raise _WrongError("an object of at most {most} fields", most=MAX_ITEMS)
    return value


def _tables(value: Any) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise _WrongError("a list of at most {most} objects", most=MAX_ITEMS)
    return tuple(_table(item) for item in value)


def _text_table(value: Any) -> dict[str, str]:
    return {name: _text(text) for name, text in _table(value).items()}


def _languages(value: Any) -> dict[str, dict[str, str]]:
    return {language: _text_table(texts) for language, texts in _table(value).items()}


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise _WrongError("a whole number")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(TEXTS, _text),
    "examples": _texts,
    "glosses": _text_table,
    "references": _text_table,
    "scores": _tables,
    "training": _table,
    "parameters": _count,
    "sha256": _text_table,
    "said": _languages,
}
