"""Words from tokens: which tokens make a word, and attention and masks between tokens merged to words.

A word begins at a piece with the mark of a space. Scripts without spaces have no such mark, so every piece stays
separate there. Special pieces stay separate, too.

Weights on the pieces of a key word are added up: the weight on a word is the weight on all its pieces. Rows of the
pieces of a query word are averaged. So rows that summed to 1 still do.

Punctuation without a space before it belongs to its word. Grammar is not considered.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transformer.text.tokenizer import SPACE_MARK

Floats = NDArray[np.floating]
Span = tuple[int, int]  # first piece, end (not included)

# Han, kana, bopomofo and their punctuation and full-width forms; Thai, Lao, Myanmar, Khmer.
_WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\uff00-\uffef\U00020000-\U0003ffff]"
)


def word_spans(pieces: Sequence[str], special: Sequence[bool], continuation: str = "") -> tuple[Span, ...]:
    """Find the words of a row of pieces: every piece is in one word; a special piece has no text.

    `continuation` is the mark at the start of pieces that continue a word; empty if words begin at a space's mark.
    """
    starts = [
        place
        for place, (piece, alone) in enumerate(zip(pieces, special, strict=True))
        if place == 0 or alone or special[place - 1] or _starts_word(pieces[place - 1], piece, continuation)
    ]
    return tuple(pairwise([*starts, len(pieces)]))


def _starts_word(before: str, piece: str, continuation: str) -> bool:
    """Whether a word begins between two pieces of text."""
    if continuation:
        return not piece.startswith(continuation)
    if piece.startswith(SPACE_MARK):
        return True
    if not before.strip(SPACE_MARK):
        return False  # a lone space mark belongs to what follows
    return bool(_WITHOUT_SPACES.match(before[-1:]) or _WITHOUT_SPACES.match(piece[:1]))


def word_text(pieces: Sequence[str], span: Span, continuation: str = "") -> str:
    """A word as its pieces spell it, with the mark of the space, without the marks of continuation."""
    first, *rest = pieces[slice(*span)]
    return first + "".join(piece.removeprefix(continuation) for piece in rest)


def by_words(weights: Floats, queries: Sequence[Span], keys: Sequence[Span]) -> Floats:
    """Attention between pieces [..., query, key] to attention between words, whose spans `word_spans` finds."""
    n_queries, n_keys = weights.shape[-2:]
    return merge_words(weights, _membership(keys, n_keys), _membership(queries, n_queries))


def open_words(allowed: NDArray[np.bool_], queries: Sequence[Span], keys: Sequence[Span]) -> NDArray[np.bool_]:
    """The mask between words: a word may attend to another if any of its pieces may attend to any of the other's."""
    rows = np.stack([allowed[slice(*span)].any(axis=0) for span in queries])  # [query word, key]
    return np.stack([rows[:, slice(*span)].any(axis=1) for span in keys], axis=1)


def merge_words(weights: Floats, src_shares: Floats, tgt_shares: Floats) -> Floats:
    """Attention between pieces [..., T, S] to attention between words [..., J, I]; row t is target piece t.

    The shares [S, I] and [T, J] are those of tokens in words; a piece in several words is divided by its characters. A
    token outside every word (the end piece) has a row of zeros. A row of the result sums to the weight that its pieces
    give to words, at most 1.
    """
    rows = tgt_shares / tgt_shares.sum(axis=0)  # [T, J]
    return np.swapaxes(rows, 0, 1) @ (weights @ src_shares)


def _membership(spans: Sequence[Span], n_pieces: int) -> Floats:
    """Which piece lies in which word, [piece, word], 0 or 1."""
    places = np.arange(n_pieces)[:, None]
    first, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return ((places >= first) & (places < end)).astype(np.float64)
