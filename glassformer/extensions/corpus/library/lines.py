"""The lines that a corpus run measures: read from a file of pairs, or from a corpus with gold word alignments.

They are read anew each time and never held as a whole; a shard's digest tells whether the file is still the same.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from glassformer.extensions.corpus.library.tables import Line
from transformer.analysis.alignment import SPACINGS, GoldPair, read_gold
from transformer.checkpoint.save import file_sha256
from transformer.errors import DataError
from transformer.i18n import say_n
from transformer.text.line_files import read_lines


@dataclass(frozen=True)
class Corpus:
    """Where the lines come from."""

    names: tuple[str, ...]  # of the file, or of the three files of a corpus with gold alignments
    sha256: str  # of the file, hexadecimal; of three files, and of how their words become text, together
    lines: Callable[[], Iterator[Line]]  # all lines with text, anew at each call
    gold: Mapping[int, GoldPair] | None = None  # by the number of the line


@dataclass(frozen=True)
class Shard:
    """The lines with text among so many lines of the file that follow each other."""

    number: int  # from 0: shard i of size n holds lines i * n + 1 to (i + 1) * n
    lines: tuple[Line, ...]
    gold: Mapping[int, GoldPair] | None = None

    def digest(self) -> bytes:
        """SHA-256 of its texts."""
        return hashlib.sha256(repr([(one.number, one.source, one.target) for one in self.lines]).encode()).digest()


def pairs(path: Path, *, most: int | None = None) -> Corpus:
    """The lines of a file, `source TAB reference` or one text each, the first `most` that have text.

    A `DataError` where it cannot be read as `read_lines` wants it; a line's columns are looked at when it is read.
    """
    _check_most(most)
    next(read_lines([path]), None)
    return Corpus((path.name,), file_sha256(path), lambda: islice(_lines(path), most))


def n_empty(path: Path) -> int:
    """How many lines of a file have no text, and so are not measured; its errors are those of `pairs`."""
    return sum(not any(map(str.strip, columns)) for _, columns in read_lines([path]))


def _check_most(most: int | None) -> None:
    if most is not None and most < 1:
        raise DataError("--max-pairs: found {found}, expected 1 or more.", found=most)


def _lines(path: Path) -> Iterator[Line]:
    for number, columns in read_lines([path]):
        source, *rest = (column.strip() for column in columns)
        if len(rest) > 1:
            raise DataError(
                say_n(
                    "{file}, line {number}: expected a text, or `source TAB reference`, found {n} column.",
                    "{file}, line {number}: expected a text, or `source TAB reference`, found {n} columns.",
                    len(columns),
                    file=str(path),
                    number=number,
                )
            )
        if source or any(rest):
            yield Line(number, source, (rest[0] or None) if rest else None)


def aligned(files: Sequence[Path], *, source_text: str, target_text: str, most: int | None = None) -> Corpus:
    """The sentences of a corpus with gold alignments, as text; its errors are those of `read_gold`.

    The files are source, target and links; the spacings are keys of `SPACINGS`.
    """
    _check_most(most)
    found = read_gold(*files)
    gold = dict(enumerate(found.pairs, start=1))

    def lines() -> Iterator[Line]:
        for number, pair in gold.items():
            source, target = SPACINGS[source_text](pair.source), SPACINGS[target_text](pair.target)
            if source or target:
                yield Line(number, source, target or None)

    whole = hashlib.sha256(" ".join((*found.sha256, source_text, target_text)).encode())
    return Corpus(found.names, whole.hexdigest(), lambda: islice(lines(), most), gold)


def shards(corpus: Corpus, size: int) -> Iterator[Shard]:
    """The lines in shards of `size` lines of the file, one shard after another; one without text does not exist."""
    for number, group in groupby(corpus.lines(), key=lambda line: (line.number - 1) // size):
        lines = tuple(group)
        gold = {one.number: corpus.gold[one.number] for one in lines} if corpus.gold else None
        yield Shard(number, lines, gold)
