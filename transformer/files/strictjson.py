"""Parser of untrusted JSON: small, shallow, finite, without duplicate keys.

Python's own parser follows nesting with recursion, turns 1e999 into infinity, accepts NaN, and lets the last of two
equal keys win. A config or the header of a tensor file needs none of that.

Source: RFC 8259, section 9, allows a parser to set limits on size, depth, range and strings.
"""

import json
import math
import re
from typing import Any

from transformer.errors import ClauseError, shown

MAX_DEPTH = 16
MAX_NUMBER = 40  # characters of one number: 2^64 has 20 digits
MAX_MARKS = 4_000_000  # commas and opening brackets: an empty list takes 2 bytes of a file and 64 of memory

_STRINGS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[{]+|[\]}]+")
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse(content: bytes, *, max_depth: int = MAX_DEPTH) -> Any:
    """Parse a JSON document in UTF-8, whose size the caller has limited; `max_depth` brackets may be open at once.

    Returns what Python's `json` does; a `ClauseError` if it is not UTF-8, not JSON, or beyond the limits.
    """
    try:
        text = content.decode("utf-8-sig")  # Windows editors write a mark at the start
    except UnicodeDecodeError as error:
        raise ClauseError("it is not valid UTF-8 (at byte {byte})", byte=error.start) from None
    marks = sum(map(content.count, (b",", b"[", b"{")))
    if marks > MAX_MARKS:
        raise ClauseError("it has {n:,} commas and opening brackets; the limit is {most:,}", n=marks, most=MAX_MARKS)
    _check_depth(text, max_depth)
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_int=_integer, parse_float=_real, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise ClauseError(
            "it is not JSON ({reason}, line {line}, column {column})",
            reason=error.msg,
            line=error.lineno,
            column=error.colno,
        ) from None
    except RecursionError:
        raise ClauseError("it is nested too deeply") from None
    if _HALF.search(text):
        _check_text(value)
    return value


def _check_depth(text: str, max_depth: int) -> None:
    depth = 0
    for found in _BRACKETS.finditer(_STRINGS.sub("", text)):
        run = found[0]
        depth += len(run) if run[0] in "[{" else -len(run)
        if depth > max_depth:
            raise ClauseError("its brackets are nested more than {most} levels deep", most=max_depth)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ClauseError("the key {key} occurs twice", key=shown(key))
        record[key] = value
    return record


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER:
        raise ClauseError(
            "it contains a number with {n:,} digit; the limit is {most}",
            "it contains a number with {n:,} digits; the limit is {most}",
            len(digits),
            most=MAX_NUMBER,
        )
    return int(digits)


def _real(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ClauseError("the number {digits} is too large", digits=shown(digits))
    return value


def _constant(name: str) -> float:
    raise ClauseError("{name} is not a valid number in JSON", name=name)


def _check_text(value: Any) -> None:
    r"""Half of a surrogate pair ("\ud800") cannot be written to a page or a file."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ClauseError("it contains an unpaired surrogate, which is not a valid character") from None
