"""Values as JSON, and read again: plain ones, records that the reader knows and sentences, and nothing that is code.

A record is written as its name with its fields in order; a sentence as what it says in each language, since what it
is made of may be a function.

Knows nothing of Streamlit.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from transformer.i18n import ENGLISH, Sentence, in_languages, languages, said

_TUPLE, _MAP, _SENTENCE = "", "map", "said"


def written(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(_plain(value), separators=(",", ":"))


def read(text: str, records: Collection[Callable[..., Any]] = ()) -> Any:
    """The value; of records, those may be in it. Raises `ValueError`, `KeyError` or `TypeError`: none was written."""
    return _value(json.loads(text), {one.__name__: one for one in records})


def _plain(value: Any) -> Any:
    """Scalars as they are; all else is a list of what it is and what it is made of."""
    if isinstance(value, Sentence):
        texts = {language: said(value, language) for language in languages()}
        return [_SENTENCE, {name: text.replace("{", "{{").replace("}", "}}") for name, text in texts.items()}]
    if is_dataclass(value):
        return [type(value).__name__, [_plain(getattr(value, field.name)) for field in fields(value)]]
    if isinstance(value, tuple):
        named = type(value).__name__ if hasattr(value, "_fields") else _TUPLE
        return [named, [_plain(part) for part in value]]
    if isinstance(value, Mapping):
        return [_MAP, {name: _plain(part) for name, part in value.items()}]
    return value


def _value(plain: Any, records: Mapping[str, Callable[..., Any]]) -> Any:
    if not isinstance(plain, list):
        return plain
    kind, made_of = plain
    if kind == _SENTENCE:
        return in_languages({ENGLISH: made_of[ENGLISH], **made_of})
    if kind == _MAP:
        return {name: _value(part, records) for name, part in made_of.items()}
    parts = tuple(_value(part, records) for part in made_of)
    return parts if kind == _TUPLE else records[kind](*parts)
