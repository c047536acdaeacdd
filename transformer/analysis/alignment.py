"""Word alignment from attention: pieces merged to words, links, and the alignment error rate (AER).

A link joins a source word and a target word. In a gold standard, people marked each link as sure or possible; every
sure link is also possible. Attention gives links: each target word is joined with the source word of its largest
weight.

Source: Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models" (2003), for AER and the two
kinds of links; Garg et al., "Jointly Learning to Align and Translate with Transformer Models" (2019), for words
from pieces. Chen et al., "Accurate Word Alignment Induction from Neural Machine Translation" (2020), for the choice
of the decoder's row (their naive and shifted attention).

Shapes: L layers, H heads, T target tokens, S source tokens, J target words, I source words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transformer.analysis.words import Floats
from transformer.errors import ClauseError

Link = tuple[int, int]  # source word, target word, both from 0

MAX_WORDS = 100_000  # a place beyond it is no word of a sentence
_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})", re.ASCII)


@dataclass(frozen=True)
class Links:
    """The gold links of one sentence."""

    sure: frozenset[Link]  # those that nobody doubts
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
            raise ClauseError(
                "{word} refers to a word beyond the first {most:,}", word=repr(word[:20]), most=MAX_WORDS
            )
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
        raise ValueError(f"the pieces have {sum(pieces)} characters, the words {sum(words)}")
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
    other places average heads of equal number in all layers, which has no meaning.
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
