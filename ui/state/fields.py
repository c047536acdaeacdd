"""The kinds of field that a view has: the default, the name in an address, how it is read there and written back.

A field at its default is not written. An address counts places (layers, steps, pieces) from 1, the app from 0.

Knows nothing of Streamlit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, Final, get_args, get_type_hints

from ui.state.address import MAX_WORD, Reader

_SPELLING: Final = "spelling"


@dataclasses.dataclass(frozen=True)
class Spelling:
    """How an address says a field."""

    name: str  # the parameter
    # Reads the parameter of a name, given the words that the field's type allows; None if the address does not say
    # it, or says nonsense.
    read: Callable[[Reader, str, tuple[str, ...]], Any]
    # A value as the address has it; of a field that takes several parameters, those by their names.
    write: Callable[[Any], object] = str


def spelled(name: str, default: Any, read: Callable[[Reader, str], Any], write: Callable[[Any], object] = str) -> Any:
    """Anything else, which says itself how it is read and written."""
    return _field(default, Spelling(name, lambda reader, said, _: read(reader, said), write))


def place(name: str, most: int, default: int | None = None) -> Any:
    """A number that the address counts from 1; its default is from 0."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.place(said, most), lambda value: value + 1))


def integer(name: str, most: int, default: int | None = None) -> Any:
    """A number of things, at least 1."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.integer(said, 1, most)))


def count(name: str, most: int, default: int | None = None) -> Any:
    """A number of things, at least 0."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.integer(said, 0, most)))


def number(name: str, least: float, most: float) -> Any:
    """A number with a fraction; None by default."""

    def read(reader: Reader, said: str, _: object) -> float | None:
        return reader.number(said, least, most)

    return _field(None, Spelling(name, read, lambda value: f"{value:.10g}"))


def flag(name: str) -> Any:
    """Yes or no; no by default."""
    return _field(False, Spelling(name, lambda reader, said, _: reader.flag(said), int))


def either(name: str) -> Any:
    """Yes or no, or neither said: then the page decides."""
    words = {"0": False, "1": True}
    return _field(None, Spelling(name, lambda reader, said, _: words.get(reader.text(said, MAX_WORD) or ""), int))


def choice(name: str, default: str) -> Any:
    """One of the words of the field's type, a `Literal`."""
    return _field(default, Spelling(name, lambda reader, said, words: reader.choice(said, words, default)))


def text(name: str, default: str = "", *, most: int = MAX_WORD) -> Any:
    """Any text of at most so many characters."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.text(said, most) or None))


def places(name: str, *, most: int, count: int) -> Any:
    """Up to `count` different numbers that the address counts from 1; none by default."""

    def read(reader: Reader, said: str, _: object) -> tuple[int, ...]:
        return reader.places(said, most=most, count=count)

    return _field((), Spelling(name, read, lambda value: ".".join(str(one + 1) for one in value)))


def read_fields(record: type, reader: Reader) -> dict[str, Any]:
    """The fields of a record declared so that an address says; what is wrong is put right and noted in the reader."""
    found = {name: spelling.read(reader, spelling.name, words) for name, _, spelling, words in _declared(record)}
    return {name: value for name, value in found.items() if value is not None}


def write_fields(record: Any) -> dict[str, object]:
    """The query parameters of a record; None where it is at its default."""
    found: dict[str, object] = {}
    for name, default, spelling, _ in _declared(record.__class__):
        value = getattr(record, name)
        said = None if value == default else spelling.write(value)
        found |= said if isinstance(said, dict) else {spelling.name: said}
    return found


def words_of(record: type, name: str) -> tuple[str, ...]:
    """The words that a field may be, in their order."""
    return next(words for field, _, _, words in _declared(record) if field == name)


def parameters(record: type) -> tuple[str, ...]:
    """The names that a record has in an address."""
    return tuple(spelling.name for _, _, spelling, _ in _declared(record))


def _field(default: object, spelling: Spelling) -> Any:
    return dataclasses.field(default=default, metadata={_SPELLING: spelling})


@cache
def _declared(record: type) -> tuple[tuple[str, Any, Spelling, tuple[str, ...]], ...]:
    """Name, default and spelling of each field, and the words that it may be."""
    types = get_type_hints(record)
    return tuple(
        (field.name, field.default, field.metadata[_SPELLING], get_args(types[field.name]))
        for field in dataclasses.fields(record)
    )
