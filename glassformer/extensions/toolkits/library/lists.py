"""Read the lists of pieces and the settings that toolkits save as text: a piece a line, YAML."""

import json
import re
from collections.abc import Iterable
from typing import Any

from glassformer.extensions.toolkits.library.toolkit import Place
from transformer.checkpoint.tokenizer_files import MAX_TOKENIZER
from transformer.errors import ClauseError, shown, within
from transformer.text.sentencepiece_check import MAX_PIECES

MAX_SETTINGS = 100_000  # bytes: real ones have 10,000, and PyYAML takes a second for so many
MAX_DEPTH = 12
MAX_LINE = 1_000  # characters of a line of a list
MAX_SLOW = 10_000  # lines that PyYAML has to read, 10,000 in a second
_PLAIN = re.compile(
    r"""(?: "([^"\\]*)" | '([^']*)' | ([^\s"'\#&*!|>%@`\[\]{},:?-][^\s\#:"'\\]*) ) \ *: \ *(\d+)""", re.VERBOSE
)
_UNICODE = re.compile(r'("(?:[^"\\]|\\u[0-9A-Fa-f]{4})*") *: *(\d+)')  # as PyYAML writes what is not ASCII


def settings(content: bytes | str, *, label: str) -> dict[str, Any]:
    """A YAML file of settings; refused if it is damaged, or nested too deeply."""
    from glassformer.extensions.toolkits.library import safe_yaml  # other models open without PyYAML

    with within(label):
        if len(content) > MAX_SETTINGS:
            raise ClauseError("has {n:,} bytes of settings; the limit is {most:,}", n=len(content), most=MAX_SETTINGS)
        found = safe_yaml.parsed(content)
        if not isinstance(found, dict) or not _fits(found, MAX_DEPTH):
            raise ClauseError("expected settings in YAML, found {found}", found=shown(found))
        return {str(key): value for key, value in found.items()}


def _fits(value: Any, depth: int) -> bool:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_fits(one, depth - 1) for one in inside)
    return True


def lines(place: Place, name: str) -> list[str]:
    """The lines of a text file, without what ends them; refused if it is no text in UTF-8, or has too many lines."""
    content = place.files.read(name, limit=MAX_TOKENIZER)
    with within(place.files.label(name)):
        return _lines(content)


def _lines(content: bytes) -> list[str]:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ClauseError("is not valid UTF-8 (at byte {byte})", byte=error.start) from None
    count = text.count("\n") + (text[-1:] not in ("", "\n"))
    if not 1 <= count <= MAX_PIECES:
        raise ClauseError("has {n:,} lines; expected a list of 1 to {most:,} pieces", n=count, most=MAX_PIECES)
    found = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    longest = max(range(count), key=lambda place: len(found[place]))
    if (n := len(found[longest])) > MAX_LINE:
        raise ClauseError(
            "line {line:,} has {n:,} characters; the limit is {most:,}", line=longest + 1, n=n, most=MAX_LINE
        )
    return found


def by_ids(place: Place, name: str) -> tuple[str, ...]:
    """The pieces of a YAML file of `piece: id`, in the order of their ids, which are those from 0 on."""
    rows = lines(place, name)
    with within(place.files.label(name)):
        return _by_ids(rows)


def _by_ids(rows: Iterable[str]) -> tuple[str, ...]:
    found, slow = dict[int, str](), 0
    for number, line in enumerate(rows, start=1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        known = _known(line.strip())
        slow += known is None
        if slow > MAX_SLOW:
            raise ClauseError(
                "more than {most:,} lines are in a form that is slow to read; write each line in the form {example}",
                most=MAX_SLOW,
                example='`"piece": 5`',
            )
        piece, i = known or _piece(line, number)
        if i in found:
            raise ClauseError(
                "{piece} has the id {i}, which {other} already has", piece=shown(piece), i=i, other=shown(found[i])
            )
        found[i] = piece
    try:
        "".join(found.values()).encode()
    except UnicodeEncodeError:
        raise ClauseError("contains an unpaired surrogate, which is not a valid character") from None
    missing = next((i for i in range(len(found)) if i not in found), None)
    if missing is not None or not found:
        raise ClauseError("lists {n:,} pieces, but none has the id {i}", n=len(found), i=missing or 0)
    return tuple(found[i] for i in range(len(found)))


def _known(line: str) -> tuple[str, int] | None:
    """A piece and its id, if they are written as they are as a rule."""
    if plain := _PLAIN.fullmatch(line):
        return next(piece for piece in plain.groups()[:3] if piece is not None), int(plain[4])
    if found := _UNICODE.fullmatch(line):
        return json.loads(found[1]), int(found[2])
    return None


def _piece(line: str, number: int) -> tuple[str, int]:
    from glassformer.extensions.toolkits.library import safe_yaml

    read = safe_yaml.parsed(line, words=True)
    if isinstance(read, dict) and len(read) == 1:
        ((piece, i),) = read.items()
        if isinstance(piece, str) and isinstance(i, str) and i.isdecimal() and len(i) < 10:
            return piece, int(i)
    raise ClauseError(
        "line {line:,} is {found}; expected a piece and its id, as in `the: 5`", line=number, found=shown(line)
    )
