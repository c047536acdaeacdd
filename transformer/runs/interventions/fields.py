"""Field types of interventions: validation, JSON, and URL encoding.

An intervention is a frozen record whose fields are declared once, with the functions below: `head: int | None =
place(say("Head"), MAX_WIDTH)` gives its label in a control, the allowed values, and its spelling in a URL. JSON holds
the values unchanged.

A URL counts places from 1, the library from 0; None is `all`. Points separate fields, so a number's point is written as
`p` and its minus as `m` (0.5 is `0p5`, -1 is `m1`). In a text, each character that is not a letter, digit or space of
ASCII is written as `~` and its UTF-8 in hexadecimal.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal
from urllib.parse import unquote_to_bytes

from transformer.errors import QueryError, shown

ALL: Final = "all"
MOST_TEXT: Final = 400  # characters
MOST_LISTED: Final = 64

What = Literal[
    "attention", "layer", "head", "query", "key", "source", "step", "source_piece", "target_piece", "number", "whole",
    "choice", "yes", "text", "numbers", "neuron",
]  # fmt: skip
"""What a field is of, for its control.

A row or a column of a map is a query or a key, a place in the source or the prompt a source, a place in the output a
step; pieces are ids of the source's or the target's vocabulary.
"""

_NUMBER = re.compile(r"m?[0-9]{1,12}(p[0-9]{1,20})?(em?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"0|m?[1-9][0-9]{0,9}", re.ASCII)
_TEXT = re.compile(r"([A-Za-z0-9]|~[0-9A-F]{2})*", re.ASCII)


@dataclass(frozen=True)
class Spelling:
    """How a field is checked, written and read."""

    what: What  # what it is of
    label: str  # what a control calls it
    check: Callable[[str, Any], Any]  # gives the value as it is kept; raises a QueryError where it is not allowed
    write: Callable[[Any], str]  # a value as the URL has it
    read: Callable[[str], Any]  # reads that; raises a QueryError
    least: float = 0  # of a number; 0 where there is no such limit
    most: float = 0  # of a number; 0 where there is no such limit
    options: Mapping[Any, str] = dataclasses.field(default_factory=dict)  # of a choice, each word with its label
    optional: bool = False  # None is allowed, and means all of them
    target: bool = False  # it says where something is changed, and not how
    default: Any = None  # what a control shows first; None where that is looked up


def place(label: str, most: int, *, what: What = "whole", optional: bool = False) -> Any:
    """A place, counted from 0 here and from 1 in a URL, below `most`; None for all, if allowed."""

    def check(said: str, value: Any) -> Any:
        if value is None and optional:
            return None
        return whole_number(said, value, 0, most - 1)

    def read(text: str) -> Any:
        if text == ALL and optional:
            return None
        return whole_number(label, int(text) if _WHOLE.fullmatch(text) and text[0] != "m" else text, 1, most) - 1

    spelling = Spelling(
        what, label, check, lambda value: ALL if value is None else str(value + 1), read,
        most=most, optional=optional, target=True,
    )  # fmt: skip
    return _field(spelling, None if optional else dataclasses.MISSING)


def number(label: str, least: float, most: float, default: float) -> Any:
    """A number between two limits, inclusive."""
    check = partial(real_number, least=least, most=most)

    def read(text: str) -> float:
        return check(label, float(text.replace("m", "-").replace("p", ".")) if _NUMBER.fullmatch(text) else text)

    return _field(Spelling("number", label, check, _digits, read, least=least, most=most), default)


def whole(label: str, least: int, most: int, default: int | None = None, *, what: What = "whole") -> Any:
    """A whole number between two limits, inclusive, such as the id of a piece."""
    check = partial(whole_number, least=least, most=most)

    def read(text: str) -> int:
        return check(label, int(text.replace("m", "-")) if _WHOLE.fullmatch(text) else text)

    spelling = Spelling(what, label, check, lambda value: str(value).replace("-", "m"), read, least=least, most=most)
    return _field(spelling, dataclasses.MISSING if default is None else default)


def choice(label: str, options: Mapping[Any, str], default: str | None = None, *, what: What = "choice",
           key: str = "", target: bool = False) -> Any:  # fmt: skip
    """One of a few words of letters and digits, each with its label; a `target` says where something changes."""

    def check(said: str, value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise QueryError(
                "{name}: found {found}, expected one of {words}.",
                name=said,
                found=shown(value),
                words=", ".join(options),
            )
        return value

    spelling = Spelling(what, label, check, str, lambda text: check(label, text), options=options, target=target)
    return _field(spelling, dataclasses.MISSING if default is None else default, key)


def yes(label: str, default: bool = False) -> Any:
    """Yes or no."""

    def check(said: str, value: Any) -> bool:
        if type(value) is not bool:
            raise QueryError("{name}: found {found}, expected true or false.", name=said, found=shown(value))
        return value

    def read(text: str) -> bool:
        if text not in ("0", "1"):
            raise QueryError("{label}: found {text}, expected 0 or 1.", label=label, text=shown(text))
        return text == "1"

    return _field(Spelling("yes", label, check, lambda value: str(int(value)), read), default)


def text(label: str) -> Any:
    """A text of 1 to 400 characters."""

    def check(said: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > MOST_TEXT:
            raise QueryError(
                "{name}: found {found}, expected text of 1 to {most} characters.",
                name=said,
                found=shown(value),
                most=MOST_TEXT,
            )
        return value.encode("utf-8", "replace").decode()

    def read(written: str) -> str:
        try:
            found = unquote_to_bytes(written.replace("~", "%")).decode() if _TEXT.fullmatch(written) else ""
        except UnicodeDecodeError:
            found = ""
        if not found:
            raise QueryError("{label}: found {text}, which is not valid text.", label=label, text=shown(written))
        return check(label, found)

    return _field(Spelling("text", label, check, _quoted, read), dataclasses.MISSING)


def numbers(label: str, least: float, most: float) -> Any:
    """A few numbers between two limits."""

    def check(said: str, value: Any) -> tuple[float, ...]:
        fits = isinstance(value, list | tuple) and 1 <= len(value) <= MOST_LISTED
        if not fits or not all(_is_number(x, least, most) for x in value):
            raise QueryError(
                "{name}: found {found}, expected 1 to {count} numbers, each from {least:g} to {most:g}.",
                name=said,
                found=shown(value),
                count=MOST_LISTED,
                least=least,
                most=most,
            )
        return tuple(float(x) + 0.0 for x in value)

    def read(written: str) -> tuple[float, ...]:
        parts = written.split("~")
        fits = all(_NUMBER.fullmatch(part) for part in parts)
        return check(label, [float(part.replace("m", "-").replace("p", ".")) for part in parts] if fits else written)

    spelling = Spelling(
        "numbers", label, check, lambda values: "~".join(map(_digits, values)), read, least=least, most=most
    )
    return _field(spelling, dataclasses.MISSING)


def _is_number(value: Any, least: float, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def real_number(name: str, value: Any, least: float, most: float) -> float:
    """A value as a float, so equal ones are written alike: 1 as 1.0; a QueryError if it is not one in the range."""
    if not _is_number(value, least, most):
        raise QueryError(
            "{name}: found {found}, expected a number from {least:g} to {most:g}.",
            name=name,
            found=shown(value),
            least=least,
            most=most,
        )
    return float(value) + 0.0  # -0.0 is 0.0


def whole_number(name: str, value: Any, least: int, most: int) -> int:
    """A value, if it is a whole number from the least to the most; else a QueryError."""
    if type(value) is not int or not least <= value <= most:
        raise QueryError(
            "{name}: found {found}, expected a whole number from {least:,} to {most:,}.",
            name=name,
            found=shown(value),
            least=least,
            most=most,
        )
    return int(value)


_SPELLING: Final = "spelling"
_NAME: Final = "name"


def spelled(record: Any) -> dict[str, tuple[str, Spelling]]:
    """Each field of a record or of its class, with its name in JSON and its spelling, in order."""
    return {
        field.name: (field.metadata[_NAME] or field.name, field.metadata[_SPELLING])
        for field in dataclasses.fields(record)
    }


def _field(spelling: Spelling, default: Any, key: str = "") -> Any:
    if default is not dataclasses.MISSING:
        spelling = dataclasses.replace(spelling, default=default)
    return dataclasses.field(default=default, metadata={_SPELLING: spelling, _NAME: key})


def _digits(value: float) -> str:
    """As few digits as give the same number again."""
    return repr(float(value)).removesuffix(".0").replace("-", "m").replace(".", "p").replace("+", "")


def _quoted(value: str) -> str:
    kept = (chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"~{byte:02X}" for byte in value.encode())
    return "".join(kept)
