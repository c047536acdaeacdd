"""Readers of sentence files: one source per line, or `source TAB reference`; limits; errors with line numbers.

Lines count from 1, as in an editor; empty ones are skipped. Only LF and CR LF end a line, because other line ends may
be part of a sentence.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from transformer.errors import ClauseError, DataError, QueryError, within
from transformer.files import untrusted_folder
from transformer.i18n import Sentence, say, say_n
from transformer.model.anatomy import anatomy
from transformer.model.config import ModelConfig
from transformer.runs.query import MAX_SOURCE_CHARACTERS, check_source
from transformer.text.line_files import read_lines


@dataclass(frozen=True)
class FileLimits:
    """How much of a file is accepted."""

    n_bytes: int = 100_000_000  # of the whole text as UTF-8
    lines: int = 1_000_000  # that are not empty
    characters: int = MAX_SOURCE_CHARACTERS  # of a source, and of a reference


@dataclass(frozen=True)
class SentenceLine:
    """A line of the file."""

    number: int  # from 1
    source: str  # what the model shall read
    reference: str | None = None  # what should come out; None if the file does not say
    problem: Sentence | None = None  # why the line cannot be run; None if nothing is known against it


_NO_LIMITS = FileLimits()


def read_file(path: Path, limits: FileLimits = _NO_LIMITS) -> tuple[SentenceLine, ...]:
    """Read a file of sentences; see `read_bytes`."""
    return read_bytes(untrusted_folder.read_start(path, limits.n_bytes + 1), limits, label=str(path))


def read_bytes(content: bytes, limits: FileLimits = _NO_LIMITS, *, label: str) -> tuple[SentenceLine, ...]:
    """The lines of a file's content, UTF-8 with or without a byte order mark; see `read_text`."""
    with within(label, DataError):
        _check_size(len(content), limits)
    return read_text(untrusted_folder.decoded(content, label=label), limits, label=label)


def read_text(text: str, limits: FileLimits = _NO_LIMITS, *, label: str) -> tuple[SentenceLine, ...]:
    """The lines of a text that are not empty, each a source or `source TAB reference`.

    A line that is too long or has more columns has a `problem`; a DataError says that a text is too large, or has too
    many lines or none.
    """
    with within(label, DataError):
        _check_size(len(text.encode("utf-8", "replace")), limits)
        rows = [(number, row.removesuffix("\r")) for number, row in enumerate(text.split("\n"), start=1)]
        rows = [(number, row) for number, row in rows if row.strip()]
        if not rows:
            raise ClauseError("has no sentences. Write one per line")
        if len(rows) > limits.lines:
            raise ClauseError(
                "has {n:,} lines with text; the limit is {most:,}. Split it", n=len(rows), most=limits.lines
            )
        return tuple(_line(number, row.split("\t"), limits) for number, row in rows)


def _check_size(n_bytes: int, limits: FileLimits) -> None:
    if n_bytes > limits.n_bytes:
        raise ClauseError("is larger than the limit of {most:,} bytes. Split it", most=limits.n_bytes)


def _line(number: int, columns: list[str], limits: FileLimits) -> SentenceLine:
    source, *rest = (column.strip() for column in columns)
    line = SentenceLine(number, source[: limits.characters], (rest[0][: limits.characters] or None) if rest else None)
    if len(rest) > 1:
        return replace(
            line,
            problem=say_n(
                "Expected a source, or a source and a reference separated by a tab; found {n} column.",
                "Expected a source, or a source and a reference separated by a tab; found {n} columns.",
                len(columns),
            ),
        )
    longest = max(map(len, (source, *rest)))
    if longest > limits.characters:
        most = limits.characters
        said = say("The line has {n:,} characters; the limit is {most:,}. Shorten it.", n=longest, most=most)
        return replace(line, problem=said)
    try:
        return replace(line, source=check_source(source))
    except QueryError as error:
        return replace(line, problem=error.sentence)


Pair = tuple[str, str]


def read_pairs(path: Path, config: ModelConfig | None = None) -> list[Pair]:
    """Read a file of `source TAB target` lines; empty lines are skipped.

    For an encoder-only model a line is one text, and its target is empty. A `DataError` as of `read_lines`, or if the
    file is empty, or a line has no or more than one tab (of one text: any).
    """
    return [pair for _, pair in read_numbered_pairs(path, config)]


def read_numbered_pairs(path: Path, config: ModelConfig | None = None) -> list[tuple[int, Pair]]:
    """The same, each pair with the number of its line, from 1."""
    alone = config is not None and not anatomy(config).writes
    pairs: list[tuple[int, Pair]] = []
    for number, columns in read_lines([path]):
        if not any(column.strip() for column in columns):
            continue
        if alone and len(columns) == 1:
            pairs.append((number, (columns[0].strip(), "")))
            continue
        if alone:
            raise DataError(
                "{file}, line {number}: expected one text without a tab, found {n} column.",
                "{file}, line {number}: expected one text without a tab, found {n} columns.",
                len(columns),
                file=str(path),
                number=number,
            )
        if len(columns) != 2 or not columns[0].strip() or not columns[1].strip():
            raise DataError(
                "{file}, line {number}: expected `source TAB target`, found {n} column.",
                "{file}, line {number}: expected `source TAB target`, found {n} columns.",
                len(columns),
                file=str(path),
                number=number,
            )
        pairs.append((number, (columns[0].strip(), columns[1].strip())))
    if not pairs:
        raise DataError("{file}: contains no pairs.", file=str(path))
    return pairs
