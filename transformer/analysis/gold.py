"""Read a corpus with gold word alignments: two files of words, line by line, and a file of links.

All files are UTF-8, one sentence per line, with spaces between words. Links are written as in
`transformer.analysis.alignment.parse_links`.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from transformer.analysis.alignment import Links, parse_links
from transformer.errors import ClauseError, DataError, within
from transformer.files import files
from transformer.i18n import Sentence, say, say_n


@dataclass(frozen=True)
class GoldPair:
    """One sentence pair as words, with its gold links."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Links


@dataclass(frozen=True)
class GoldSet:
    """An alignment corpus."""

    names: tuple[str, ...]  # of the source file, the target file and the file of links
    sha256: tuple[str, ...]  # of each, hexadecimal
    pairs: tuple[GoldPair, ...]  # one a line


def read_gold(source: Path, target: Path, gold: Path) -> GoldSet:
    """Read two files of words, one sentence per line, and their file of links (see `parse_links`).

    A DataError says which file is missing, empty or not UTF-8, that they differ in length, or that a link is damaged
    or names a word that its sentence does not have.
    """
    paths = (source, target, gold)
    contents = [files.read_start(path) for path in paths]
    lines = [_lines(content, path) for content, path in zip(contents, paths, strict=True)]
    if len({len(found) for found in lines}) > 1:
        counted = ", ".join(f"{path.name} {len(found):,}" for path, found in zip(paths, lines, strict=True))
        raise DataError("the three files must have the same number of lines; found {counted}.", counted=counted)
    pairs = [
        _pair(*row, label=say("{file}, line {line}", file=str(gold), line=n))
        for n, row in enumerate(zip(*lines, strict=True), start=1)
    ]
    if not any(pair.links.sure for pair in pairs):
        raise DataError(
            "{file}: has no sure link such as `3-4`, so there are no links to compare with.", file=str(gold)
        )
    hashes = tuple(hashlib.sha256(content).hexdigest() for content in contents)
    return GoldSet(tuple(path.name for path in paths), hashes, tuple(pairs))


def _lines(content: bytes, path: Path) -> list[str]:
    text = files.decoded(content, label=str(path))
    # Only these are ends of lines: U+2028 and the like may stand inside a sentence.
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if lines == [""]:
        raise DataError("{file}: is empty; expected one sentence per line.", file=str(path))
    return lines


def _pair(source: str, target: str, gold: str, *, label: str) -> GoldPair:
    with within(label, DataError):
        words = GoldPair(tuple(source.split()), tuple(target.split()), parse_links(gold))
        for side, place, found in (("source", 0, words.source), ("target", 1, words.target)):
            last = max((link[place] for link in words.links.possible), default=-1)
            if last >= len(found):
                raise ClauseError(_outside(side, last, len(found)))
    return words


def _outside(side: str, last: int, count: int) -> Sentence:
    if side == "source":
        return say_n("a link refers to source word {last}, counted from 0, but the source has only {n} word. Give "
                     "the files in the order source, target, links",
                     "a link refers to source word {last}, counted from 0, but the source has only {n} words. Give "
                     "the files in the order source, target, links", count, last=last)  # fmt: skip
    return say_n("a link refers to target word {last}, counted from 0, but the target has only {n} word. Give "
                 "the files in the order source, target, links",
                 "a link refers to target word {last}, counted from 0, but the target has only {n} words. Give "
                 "the files in the order source, target, links", count, last=last)  # fmt: skip
