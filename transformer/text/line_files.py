"""Readers of parallel text (TSV, zip, two line-aligned files), and a key by which equal sentences are found.

manythings.org/anki gives `english TAB other TAB attribution`, one pair per line, as `fra.txt` inside `fra-eng.zip`.
Nothing is unpacked to disk, and lines, bytes and line lengths are limited, so a wrong or hostile file ends in a
message. `cleaning` decides which lines are kept.
"""

import codecs
import io
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from transformer.errors import DataError, shown

MAX_BYTES = 1_000_000_000  # of one file, unpacked
MAX_LINES = 3_000_000
MAX_LINE_BYTES = 100_000
SAMPLE_LINES = 100  # of a zip's member, to tell pairs from a text about them


class Line(NamedTuple):
    """One line: its number from 1, and its columns unchanged."""

    number: int
    columns: tuple[str, ...]


def read_lines(files: Sequence[Path]) -> Iterator[Line]:
    """Read one text of tab-separated lines, a zip that holds one, or two texts whose lines belong together.

    A `DataError` if a file is missing, not UTF-8, over a limit, not what it seems, or has lines that the other lacks.
    """
    if len(files) not in (1, 2):
        raise DataError(
            "{n} file was given; give one file of tab-separated lines or two line-aligned files.",
            "{n} files were given; give one file of tab-separated lines or two line-aligned files.",
            len(files),
        )
    if len(files) == 2:
        yield from _aligned(*files)
        return
    for number, text in enumerate(_texts(files[0]), start=1):
        yield Line(number, tuple(text.split("\t")))


def _aligned(first: Path, second: Path) -> Iterator[Line]:
    texts = (_texts(first), _texts(second))
    for number, (source, target) in enumerate(zip_longest(*texts), start=1):
        if source is None or target is None:
            longer, shorter = (second, first) if source is None else (first, second)
            n_lines = number + sum(1 for _ in texts[source is None])
            raise DataError(
                "{shorter} has {n_shorter:,} lines, but {longer} has {n_lines:,}. Two files must correspond line "
                "by line; if your pairs are separated by tabs, give one file.",
                shorter=str(shorter),
                n_shorter=number - 1,
                longer=str(longer),
                n_lines=n_lines,
            )
        yield Line(number, (source, target))


def _texts(path: Path) -> Iterator[str]:
    """The lines of a file without their ends; only LF and CR LF end a line, as a sentence may contain others."""
    offset = 0
    with _open(path) as (name, file):
        # One byte more than allowed shows that a line is too long.
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            if number == 1 and b"\r" in raw[:-1] and b"\n" not in raw:  # no other line has an LF either
                raise DataError(
                    "{name}: its lines end with CR alone; save it with LF or CR LF line endings.", name=name
                )
            if len(raw) > MAX_LINE_BYTES:
                raise DataError(
                    "{name}, line {number:,}: is longer than {most:,} bytes; is this a text file with one sentence "
                    "per line?",
                    name=name,
                    number=number,
                    most=MAX_LINE_BYTES,
                )
            if number > MAX_LINES or offset + len(raw) > MAX_BYTES:
                raise DataError(
                    "{name}: has more than {max_lines:,} lines or {most:,} bytes; split it into parts.",
                    name=name,
                    max_lines=MAX_LINES,
                    most=MAX_BYTES,
                )
            yield _decode(raw, name=name, number=number, offset=offset)
            offset += len(raw)


def _decode(raw: bytes, *, name: str, number: int, offset: int) -> str:
    if offset == 0 and raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError("{name}: looks like UTF-16; save it as UTF-8.", name=name)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            "{name}: not UTF-8 (byte {place:,}, line {line:,}: {byte:#04x}); save it as UTF-8.",
            name=name,
            place=offset + error.start,
            line=number,
            byte=raw[error.start],
        ) from None
    if offset == 0:
        text = text.removeprefix("\ufeff")
    return text.removesuffix("\n").removesuffix("\r")


@contextmanager
def _open(path: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Open a text, if need be inside a zip; returns what messages call it, and the open file."""
    if path.exists() and not path.is_file():
        raise DataError("{label}: is not a regular file.", label=str(path))
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start[:2] == b"\x1f\x8b":
                raise DataError("{file}: is compressed with gzip; decompress it first (gunzip).", file=str(path))
            if start != b"PK\x03\x04":
                yield str(path), file
                return
            with zipfile.ZipFile(file) as archive:
                member = _pairs_in(archive, str(path))
                with _open_member(archive, member) as text:
                    yield f"{path}/{Path(member.filename).name}", text
    except OSError as error:
        raise DataError("{file}: cannot be read ({reason}).", file=str(path), reason=error.strerror) from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error, EOFError) as error:
        raise DataError(
            "{file}: cannot be unpacked ({problem}); unpack it yourself and give the text file inside.",
            file=str(path),
            problem=str(error),
        ) from None


def _pairs_in(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """The one text of an archive whose lines hold tabs; manythings.org adds `_about.txt`."""
    texts = [member for member in archive.infolist() if member.filename.lower().endswith((".txt", ".tsv"))]
    found = [member for member in texts[:SAMPLE_LINES] if _has_columns(archive, member)]
    if len(found) != 1:
        names = shown(", ".join(member.filename for member in found or archive.infolist()))
        raise DataError(
            "{name}: {n} of its files has tab-separated lines, but exactly one is expected ({names}); unpack "
            "it and give one file.",
            "{name}: {n} of its files have tab-separated lines, but exactly one is expected ({names}); unpack "
            "it and give one file.",
            len(found),
            name=name,
            names=names,
        )
    return found[0]


def _has_columns(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bool:
    with _open_member(archive, member) as file:
        lines = [file.readline(MAX_LINE_BYTES) for _ in range(SAMPLE_LINES)]
    filled = [line for line in lines if line.strip()]
    return 2 * sum(b"\t" in line for line in filled) > len(filled)


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> BinaryIO:
    # Buffered: zipfile's own readline with a limit goes byte by byte.
    return cast(BinaryIO, io.BufferedReader(archive.open(member)))


class _Letters(dict[int, int | None]):
    """A table for `str.translate` that keeps letters, digits and the marks on them, and is filled on demand."""

    def __missing__(self, code: int) -> int | None:
        character = chr(code)
        # Marks count: in Hindi or Thai a vowel is one.
        kept = character.isalnum() or unicodedata.category(character).startswith("M")
        self[code] = code if kept else None
        return self[code]


_LETTERS = _Letters()


def sentence_key(text: str) -> str:
    """What is left of a sentence without case, width, punctuation, symbols and spaces."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    key = folded.translate(_LETTERS)
    return key if key.isascii() else unicodedata.normalize("NFC", key)
