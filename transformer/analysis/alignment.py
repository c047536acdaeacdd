"""Word alignment from attention: pieces merged to words, links, and the alignment error rate (AER).

A link joins a source word and a target word. In a gold standard, people marked links as sure or possible; sure links
are possible, too. Attention links each target word to the source word of its largest weight.

A corpus is two files of words and a file of links (see `parse_links`), all UTF-8, one sentence per line, with spaces
between all words and punctuation marks. Models learned from ordinary text; `SPACINGS` make such text of words, by
simple rules: quotation marks alternately open and close, and only French has a space before marks such as : and ;.

Source: Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models" (2003), for AER and the two
kinds of links; Garg et al., "Jointly Learning to Align and Translate with Transformer Models" (2019), for words
from pieces. Chen et al., "Accurate Word Alignment Induction from Neural Machine Translation" (2020), for the choice
of the decoder's row (their naive and shifted attention).

Shapes: L layers, H heads, T target tokens, S source tokens, J target words, I source words.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.word_merging import Floats
from transformer.errors import ClauseError, DataError, within
from transformer.files import untrusted_folder
from transformer.i18n import Sentence, say, say_n

Link = tuple[int, int]  # source word, target word, both from 0

MAX_WORDS = 100_000  # no sentence has a word at a place beyond it
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Links:
    """The gold links of one sentence."""

    sure: frozenset[Link]  # those that annotators were sure of
    possible: frozenset[Link]  # those that may be there, the sure ones included


@dataclass(frozen=True)
class Counts:
    """The counts behind AER; the arrays have one shape, with one number per way of linking."""

    sure_hits: NDArray[np.int64]  # links found that are sure
    possible_hits: NDArray[np.int64]  # links found that are possible
    n_found: int  # links found
    n_sure: int  # sure links there are

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.sure_hits + other.sure_hits,
            self.possible_hits + other.possible_hits,
            self.n_found + other.n_found,
            self.n_sure + other.n_sure,
        )

    def aer(self) -> Floats:
        """Alignment error rate, 0 (all right) to 1: 1 - (|A and S| + |A and P|) / (|A| + |S|)."""
        return 1.0 - (self.sure_hits + self.possible_hits) / (self.n_found + self.n_sure)


def parse_links(line: str) -> Links:
    """Read one line of gold links: `3-4` is sure, `3p4` possible; source word, then target word, from 0.

    White space separates links. Anything else is a ClauseError.
    """
    sure, possible = set(), set()
    for word in line.split():
        match = _LINK.fullmatch(word)
        if match is None:
            raise ClauseError("{word} is not a link; expected `3-4` (sure) or `3p4` (possible)", word=repr(word[:20]))
        link = int(match[1]), int(match[3])
        if max(link) >= MAX_WORDS:
            raise ClauseError("{word} refers to a word beyond the first {most:,}", word=repr(word[:20]), most=MAX_WORDS)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Links(frozenset(sure), frozenset(possible))


def piece_shares(pieces: Sequence[int], words: Sequence[int]) -> Floats:
    """The share of each piece in each word, 0 to 1 [piece, word], by the number of visible characters.

    A row sums to 1, or to 0 if the piece has no visible character. A ValueError says that the texts differ in length,
    or that a word has no character.
    """
    if sum(pieces) != sum(words):
        raise ValueError(f"the tokens have {sum(pieces)} characters, the words {sum(words)}")
    if 0 in words:
        raise ValueError(f"word {list(words).index(0)} has no character")
    piece_ends, word_ends = np.cumsum(pieces, dtype=np.int64), np.cumsum(words, dtype=np.int64)
    ends = np.minimum(piece_ends[:, None], word_ends[None])  # [piece, word]
    starts = np.maximum((piece_ends - pieces)[:, None], (word_ends - words)[None])
    common = np.maximum(ends - starts, 0)
    return common / np.maximum(np.asarray(pieces, dtype=np.int64), 1)[:, None]


def with_means(weights: Floats) -> Floats:
    """Append the mean over heads as one more head, and the mean over all layers as one more layer.

    [L, H, J, I] -> [L + 1, H + 1, J, I]. The last place of the last layer is the mean over all layers and heads; its
    other places have no meaning.
    """
    heads = np.concatenate((weights, weights.mean(axis=1, keepdims=True)), axis=1)
    return np.concatenate((heads, heads.mean(axis=0, keepdims=True)), axis=0)


def best_sources(weights: Floats) -> NDArray[np.int64]:
    """For each target word the source word of its largest weight: [..., J, I] -> [..., J]."""
    return weights.argmax(axis=-1)


def diagonal_sources(n_target: int, n_source: int) -> NDArray[np.int64]:
    """For each target word the source word at the same relative place [J]: a baseline without a model."""
    places = (np.arange(n_target) + 0.5) / n_target * n_source
    return np.minimum(places.astype(np.int64), n_source - 1)


def count_links(sources: NDArray[np.int64], links: Links, *, n_source: int) -> Counts:
    """Compare links with a sentence's gold links: the source word of each target word [..., J] -> counts [...]."""
    n_target = sources.shape[-1]
    target = np.arange(n_target)
    hits = []
    for gold in (links.sure, links.possible):
        table = np.zeros((n_target, n_source), dtype=np.int64)
        for i, j in gold:
            table[j, i] = 1
        hits.append(table[target, sources].sum(axis=-1))
    return Counts(hits[0], hits[1], n_target, len(links.sure))


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
    contents = [untrusted_folder.read_start(path) for path in paths]
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
    text = untrusted_folder.decoded(content, label=str(path))
    # Only these are ends of lines: a sentence may contain U+2028 and the like.
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


Spacing = Callable[[Sequence[str]], str]

WITHOUT_SPACES = frozenset({"zh", "yue", "wuu", "ja", "th", "lo", "km", "my"})
_CLOSING = frozenset(",.)]}%…")
_CLOSING_UNLESS_FRENCH = frozenset(":;!?")
_OPENING = frozenset("([{$£¥")
_CLITIC = re.compile(r"(?:['’]\w*|n['’]t)", re.IGNORECASE)  # a lone ' as in the workers' rights
_ELIDED = re.compile(r"(?<!\S)(\w+['’]) ")  # l' homme


def spaced(words: Sequence[str]) -> str:
    """The words with spaces between them, as the corpus has them."""
    return " ".join(words)


def joined(words: Sequence[str]) -> str:
    """The words without spaces, except between Latin letters or digits that would run together."""
    text = ""
    for word in words:
        grows = text[-1:].isascii() and text[-1:].isalnum() and word[:1].isascii() and word[:1].isalnum()
        text += " " * grows + word
    return text


def attached(words: Sequence[str]) -> str:
    """Punctuation and clitics attached to their words: `it 's ( not ) here .` as `it's (not) here.` and the like."""
    return _attach(words, _CLOSING | _CLOSING_UNLESS_FRENCH)


def attached_french(words: Sequence[str]) -> str:
    """The same, with a space before `: ; ! ?` and none after `l'`."""
    return _ELIDED.sub(r"\1", _attach(words, _CLOSING))


SPACINGS: dict[str, Spacing] = {
    "spaced": spaced,
    "joined": joined,
    "attached": attached,
    "attached-french": attached_french,
}


def usual_spacing(language: str) -> str:
    """The usual spacing of a language, as a key of `SPACINGS`, by a code such as "zh-Hans"; without one, spaces."""
    code = language.lower().split("-")[0]
    if not code:
        return "spaced"
    if code in WITHOUT_SPACES:
        return "joined"
    return "attached-french" if code == "fr" else "attached"


def _attach(words: Sequence[str], closing: frozenset[str]) -> str:
    text, open_quote, glued = "", False, True  # glued: the next word follows without a space
    for word in words:
        is_quote = word == '"'
        closes = (is_quote and open_quote) or set(word) <= closing or _CLITIC.fullmatch(word) is not None
        text += word if glued or closes else f" {word}"
        open_quote ^= is_quote
        glued = (is_quote and open_quote) or set(word) <= _OPENING
    return text
