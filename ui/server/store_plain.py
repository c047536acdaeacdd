"""A room's state as JSON texts by names, and read again: its values and its sentences, and nothing that is code.

A record is written as its name with its fields in order; a sentence as what it says in each language, since what it
is made of may be a function.

Knows nothing of Streamlit.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from ui.server.public import Kept, Public, Question, Round
from ui.server.room import Student
from words import ENGLISH, Sentence, in_languages, languages, said

_RECORDS: Final[dict[str, Callable[..., Any]]] = {
    one.__name__: one for one in (Kept, Public, Question, Round, Student)
}
_TUPLE, _MAP, _SENTENCE = "", "map", "said"


def written(value: Any) -> str:
    """A value of a state as JSON."""
    return json.dumps(_plain(value), separators=(",", ":"))


def read(text: str) -> Any:
    """The value. Raises `ValueError`, `KeyError` or `TypeError`: this program has not written it."""
    return _value(json.loads(text))


def _plain(value: Any) -> Any:
    """Scalars as they are; all else is a list of what it is and what it is made of."""
    if isinstance(value, Sentence):
        texts = {language: said(value, language) for language in languages()}
        return [_SENTENCE, {name: text.replace("{", "{{").replace("}", "}}") for name, text in texts.items()}]
    if is_dataclass(value):
        return [type(value).__name__, [_plain(getattr(value, field.name)) for field in fields(value)]]
    if isinstance(value, tuple):
        named = type(value).__name__ if isinstance(value, Student) else _TUPLE
        return [named, [_plain(part) for part in value]]
    if isinstance(value, Mapping):
        return [_MAP, {name: _plain(part) for name, part in value.items()}]
    return value


def _value(plain: Any) -> Any:
    if not isinstance(plain, list):
        return plain
    kind, made_of = plain
    if kind == _SENTENCE:
        return in_languages({ENGLISH: made_of[ENGLISH], **made_of})
    if kind == _MAP:
        return {name: _value(part) for name, part in made_of.items()}
    parts = tuple(_value(part) for part in made_of)
    return parts if kind == _TUPLE else _RECORDS[kind](*parts)
