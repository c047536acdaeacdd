"""Record fields as query parameters: field types, the `Reader` that checks an address, the base class `Look`.

A field at its default is not written. An address counts places (layers, steps, pieces) from 1, the app from 0. What
it says is never trusted: what is unknown or out of range is put right and said in a note.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar, dataclass_transform, get_args, get_type_hints

from transformer.errors import QueryError
from transformer.extensions import provided
from transformer.i18n import say
from transformer.runs.query import MAX_NEW, MAX_SOURCE_CHARACTERS, check_reference, check_source

Branch = tuple[int, ...]

MOST_BRANCHES: Final = 12
LONGEST_BRANCHES: Final = 1_500  # that is written: an address has to fit into a message


def write_branches(branches: Sequence[Branch]) -> str:
    """The branches as text; the oldest are left out if there is no room for them."""
    kept = list(branches[-MOST_BRANCHES:])
    while len(text := _written(kept)) > LONGEST_BRANCHES:
        del kept[0]
    return text


def read_branches(text: str, *, longest: int) -> tuple[Branch, ...] | None:
    """What `write_branches` wrote, of branches with so many pieces at most; None for anything else."""
    found: list[Branch] = []
    for item in text.split("_") if text else ():
        common, mark, rest = item.rpartition("~")
        ids = rest.split(".") if rest else []
        if not all(one.isascii() and one.isdigit() and len(one) < 8 for one in [*ids, *([common] if mark else [])]):
            return None
        before, n = found[-1] if found else (), int(common or 0)
        branch = (*before[:n], *map(int, ids))
        if n > len(before) or not branch or len(branch) > longest:
            return None
        found.append(branch)
    return tuple(dict.fromkeys(found)) if len(found) <= MOST_BRANCHES else None


def _written(branches: Sequence[Branch]) -> str:
    before: Branch = ()
    items = []
    for branch in branches:
        n = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, branch, strict=False)))
        ids = ".".join(map(str, branch[n:]))
        items.append(f"{n}~{ids}" if n else ids)
        before = branch
    return "_".join(items)


MAX_STEP: Final = 1_000_000  # the run says how many steps there are
MAX_LAYER: Final = 1000
MAX_PLACE: Final = 32_768
MOST_COMPANIONS: Final = 3
LONGEST_NAME: Final = 200  # characters of a parameter or a checkpoint
MAX_FORCED: Final = MAX_NEW
MAX_WORD: Final = 40
_SPELLING: Final = "spelling"
_PAGE: Final = "page"
_Number = TypeVar("_Number", int, float)


class Reader:
    """Reads parameters one by one and writes down what was wrong with them."""

    def __init__(self, parameters: Mapping[str, Sequence[str]]) -> None:
        self._parameters = parameters
        self.notes: list[str] = []

    def text(self, name: str, longest: int) -> str | None:
        """The value as it is; None if it is missing or too long."""
        values = self._values(name)
        if values and len(values[0]) > longest:
            said = say(
                "“{name}” in the link is too long ({count:,} characters) and was ignored.",
                name=name,
                count=len(values[0]),
            )
            self.notes.append(said)
            return None
        return values[0] if values else None

    def in_range(self, name: str, kind: type[_Number], least: _Number, most: _Number) -> _Number | None:
        """A number, a whole one if that is the kind, moved into its range."""
        text = self.text(name, MAX_WORD)
        if text is None:
            return None
        try:
            value = kind(text)
        except ValueError:
            said = say(
                "“{name}” in the link is “{text}”, which is not a number; it was ignored.", name=name, text=_short(text)
            )
            self.notes.append(said)
            return None
        clamped = min(max(value, least), most) if value == value else least  # NaN is not equal to itself
        if clamped != value:
            said = say("“{name}” in the link is {text}, outside the allowed range of {least:g} to {most:g}; the "
                       "nearest allowed value is used.", name=name, text=_short(text), least=least,
                       most=most)  # fmt: skip
            self.notes.append(said)
        return clamped

    def source(self, name: str) -> str | None:
        """The sentence."""
        return self._checked(name, check_source)

    def reference(self, name: str) -> str | None:
        """The right output."""
        return self._checked(name, check_reference) or None

    def _checked(self, name: str, check: Callable[[str], str]) -> str | None:
        values = self._values(name)
        try:
            return check(values[0]) if values else None
        except QueryError as error:
            self.notes.append(_ignored(name, error))
            return None

    def ids(self, name: str) -> tuple[int, ...]:
        """Ids joined by dots."""
        ids = _numbers(self.text(name, MAX_FORCED * 8))
        if ids is None or len(ids) > MAX_FORCED:
            self.notes.append(unread(name))
            return ()
        return ids

    def branches(self, name: str) -> tuple[Branch, ...]:
        """Forced beginnings."""
        found = read_branches(self.text(name, 2 * LONGEST_BRANCHES) or "", longest=MAX_FORCED)
        if found is None:
            self.notes.append(unread(name))
        return found or ()

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """One of a few words; the default if it is missing or another."""
        text = self.text(name, MAX_WORD)
        if text is None or text in options:
            return text or default
        said = say(
            "“{name}” in the link is “{text}”, which is not a valid choice; {default} is used instead.",
            name=name,
            text=_short(text),
            default=default,
        )
        self.notes.append(said)
        return default

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether the value is 1; the default if the link has none."""
        said = self.text(name, MAX_WORD)
        return default if said is None else said == "1"

    def place(self, name: str, most: int) -> int | None:
        """A number that the link counts from 1, as one from 0."""
        value = self.in_range(name, int, 1, most)
        return None if value is None else value - 1

    def places(self, name: str, *, most: int, count: int) -> tuple[int, ...]:
        """Different numbers joined by dots, which the link counts from 1, as ones from 0."""
        numbers = _numbers(self.text(name, count * 8))
        if numbers is None or len(numbers) > count or not all(1 <= number <= most for number in numbers):
            self.notes.append(unread(name))
            return ()
        return tuple(dict.fromkeys(number - 1 for number in numbers))

    def sentences(self, name: str, *, most: int) -> tuple[str, ...] | None:
        """Sentences joined by line breaks; None if the link says nothing."""
        text = self.text(name, most * MAX_SOURCE_CHARACTERS)
        if text is None:
            return None
        if len(lines := text.splitlines()) > most:
            said = say(
                "“{name}” in the link has {count} sentences; only the first {most} are used.",
                name=name,
                count=len(lines),
                most=most,
            )
            self.notes.append(said)
        try:
            return tuple(check_source(line) for line in lines[:most])
        except QueryError as error:
            self.notes.append(_ignored(name, error))
            return None

    def _values(self, name: str) -> Sequence[str]:
        values = self._parameters.get(name) or []
        if len(values) > 1:
            said = say(
                "“{name}” appears {count} times in the link; only the first is used.", name=name, count=len(values)
            )
            self.notes.append(said)
        return values


def _ignored(name: str, error: QueryError) -> str:
    return say("“{name}” in the link was ignored. {problem}", name=name, problem=error.sentence)


def unread(name: str) -> str:
    """What is said of a parameter that says nothing."""
    return say("“{name}” in the link could not be read and was ignored.", name=name)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    """Whole numbers joined by dots; None if that is not what the text has."""
    parts = text.split(".") if text else []
    good = all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts)
    return tuple(map(int, parts)) if good else None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "…"


# ---------------------------------------------------------------- kinds of field


@dataclasses.dataclass(frozen=True)
class Spelling:
    """How an address says a field."""

    name: str  # the parameter
    # Reads a parameter by its name, given the words that the field's type allows; None if missing or invalid.
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
    return _field(default, Spelling(name, lambda reader, said, _: reader.in_range(said, int, 1, most)))


def count(name: str, most: int, default: int | None = None) -> Any:
    """A number of things, at least 0."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.in_range(said, int, 0, most)))


def number(name: str, least: float, most: float) -> Any:
    """A number with a fraction; None by default."""
    read = Spelling(
        name,
        lambda reader, said, _: reader.in_range(said, float, least, most),
        lambda value: repr(float(value)).removesuffix(".0"),
    )
    return _field(None, read)


def flag(name: str, *, default: bool = False) -> Any:
    """Yes or no; no by default."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.flag(said, default), int))


def either(name: str) -> Any:
    """Yes or no, or neither said: then the page decides."""
    words = {"0": False, "1": True}
    return _field(None, Spelling(name, lambda reader, said, _: words.get(reader.text(said, MAX_WORD) or ""), int))


def choice(name: str, default: str) -> Any:
    """One of the words of the field's type, a `Literal`."""
    return _field(default, Spelling(name, lambda reader, said, words: reader.choice(said, words, default)))


def part(name: str, default: str, *, page: str) -> Any:
    """One of the parts of a page: the words of the field's type, and the parts that extensions add to it."""
    field = choice(name, default)
    return dataclasses.field(default=default, metadata={**field.metadata, _PAGE: page})


def text(name: str, default: str = "", *, most: int = MAX_WORD) -> Any:
    """Any text of at most so many characters."""
    return _field(default, Spelling(name, lambda reader, said, _: reader.text(said, most) or None))


def places(name: str, *, most: int, count: int) -> Any:
    """Up to `count` different numbers that the address counts from 1; none by default."""

    def write(value: tuple[int, ...]) -> str:
        return ".".join(str(one + 1) for one in value)

    return _field((), Spelling(name, lambda reader, said, _: reader.places(said, most=most, count=count), write))


class Declared(NamedTuple):
    """A field as its record declares it."""

    record: type
    name: str
    default: Any
    spelling: Spelling
    words: tuple[str, ...]  # that it may be, of a choice


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Look:
    """Fields of the view that belong to one page or extension: a subclass declares them, as a frozen record."""

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


@cache
def declared(record: type) -> tuple[Declared, ...]:
    """The fields of a record that an address may say."""
    types = get_type_hints(record)

    def words(field: dataclasses.Field[Any]) -> tuple[str, ...]:
        page = field.metadata.get(_PAGE)
        added = provided("parts") if page else ()
        return (*get_args(types[field.name]), *(one.name for one in added if one.page == page))

    return tuple(
        Declared(record, field.name, field.default, field.metadata[_SPELLING], words(field))
        for field in dataclasses.fields(record)
        if _SPELLING in field.metadata
    )


def read_fields(fields: Iterable[Declared], reader: Reader) -> dict[str, Any]:
    """The fields that an address says, but for defaults; what is wrong is put right and noted in the reader."""
    found = [(one, one.spelling.read(reader, one.spelling.name, one.words)) for one in fields]
    return {one.name: value for one, value in found if value is not None and value != one.default}


def write_fields(values: Iterable[tuple[Declared, Any]]) -> dict[str, object]:
    """The query parameters of fields; None where one is at its default."""
    found: dict[str, object] = {}
    for one, value in values:
        said = None if value == one.default else one.spelling.write(value)
        found |= said if isinstance(said, dict) else {one.spelling.name: said}
    return found


def _field(default: object, spelling: Spelling) -> Any:
    return dataclasses.field(default=default, metadata={_SPELLING: spelling})
