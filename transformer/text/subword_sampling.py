"""Seeded subword sampling: lattice of a unigram model (subword regularisation), merges of a BPE one (BPE-dropout).

SentencePiece can draw splits too, but from 0.2.2 on it keeps a seed only within one process, so no training could be
repeated. Here every draw follows from the numbers of the given generator.

Source: Kudo, "Subword Regularization" (2018), section 3.2, for unigram models: forward filtering, backward sampling.
Provilkov et al., "BPE-Dropout" (2020), for BPE models. How pieces are scored, where a character is unknown and which
merge comes first are as in SentencePiece, so the likeliest split is that of `encode`.
"""

import heapq
import math
import random
from collections.abc import Callable, Sequence
from itertools import accumulate

from transformer.errors import TokenizerError
from transformer.text import sentencepiece_check
from transformer.text.sentencepiece_check import TRAINER, UNKNOWN, Piece, read
from transformer.text.tokenizer import Tokenizer

NORMAL, USER_DEFINED, UNUSED, BYTE = 1, 4, 5, 6  # types of pieces
MODEL_TYPE, BYTE_FALLBACK = 3, 35  # field numbers of a model's settings
UNIGRAM, BPE = 1, 2  # model types
UNKNOWN_PENALTY = 10.0  # how far an unknown character lies below the worst piece

Part = tuple[str, int]  # a piece of the text and its id
Edge = tuple[int, int, float]  # where a piece begins, its id, the log-weight of all splits that end with it


class Sampler:
    """Draws splits for one vocabulary; TokenizerError if it knows one split only, as of single characters."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        model = tokenizer.serialized()
        pieces = read(model)
        settings = _settings(model)
        splitters: dict[int, type[Lattice | Merges]] = {UNIGRAM: Lattice, BPE: Merges}
        if settings[MODEL_TYPE] not in splitters:
            raise TokenizerError(
                "this vocabulary splits each text in only one way, because its tokens are characters or words, so "
                "no split can be sampled; remove --sampling."
            )
        self._normalise = tokenizer.normalised
        self._splitter = splitters[settings[MODEL_TYPE]](pieces)
        self._unknown = _unknown(pieces)
        self._bytes = {p.text: i for i, p in enumerate(pieces) if p.type == BYTE and settings[BYTE_FALLBACK]}

    def draw(self, text: str, *, alpha: float, rng: random.Random) -> tuple[int, ...]:
        """Draw one split of a text, as ids; the same state of `rng` gives the same split.

        For a unigram model `alpha` says how much better splits are preferred: from 0, where all are alike, to about 10,
        where nearly all are that of `encode`. For a BPE model it is the share of merges left out: at 0 the split is
        that of `encode`, at 1 single characters.
        """
        ids: list[int] = []
        after_unknown = False
        for part, i in self._splitter.split(self._normalise(text), alpha=alpha, rng=rng):
            unknown = i == self._unknown
            if unknown and self._bytes:
                ids.extend(self._bytes.get(f"<0x{byte:02X}>", i) for byte in part.encode())
            elif not (unknown and after_unknown):  # a run of unknown characters is one token
                ids.append(i)
            after_unknown = unknown
        return tuple(ids)


class Lattice:
    """A unigram model: a split's weight is the product of its pieces' probabilities, each to the power alpha."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        normal = [piece.score for piece in pieces if piece.type == NORMAL] or [0.0]
        self._unknown = _unknown(pieces)
        self._unknown_score = min(normal) - UNKNOWN_PENALTY
        # Each beginning of a piece is listed too, with None; a search ends where no piece goes on.
        self._table: dict[str, tuple[int, float] | None] = {}
        for i, piece in enumerate(pieces):
            if piece.type not in (NORMAL, USER_DEFINED):
                continue
            for length in range(1, len(piece.text)):
                self._table.setdefault(piece.text[:length], None)
            wanted = len(piece.text) * max(normal) - 0.1  # of a piece that its user wants to have
            self._table[piece.text] = i, piece.score if piece.type == NORMAL else wanted

    def split(self, text: str, *, alpha: float, rng: random.Random) -> list[Part]:
        """Draw a split with its probability: filter forward, then sample backward from the end."""
        totals, edges = self._filter(text, alpha)
        parts: list[Part] = []
        end = len(text)
        while end:
            shares = accumulate(math.exp(weight - totals[end]) for _, _, weight in edges[end])
            drawn = rng.random()
            chosen = next((edge for edge, upto in zip(edges[end], shares, strict=True) if drawn < upto), edges[end][-1])
            start, i, _ = chosen  # the last one, should rounding leave a rest
            parts.append((text[start:end], i))
            end = start
        return parts[::-1]

    def _filter(self, text: str, alpha: float) -> tuple[list[float], list[list[Edge]]]:
        """For each place: log of the summed weights of all splits up to it, and the pieces that end there."""
        table, size = self._table, len(text)
        edges: list[list[Edge]] = [[] for _ in range(size + 1)]
        totals = [0.0] * (size + 1)
        for start in range(size):
            if start:
                totals[start] = _log_sum(edges[start])
            total, single = totals[start], False
            for end in range(start + 1, size + 1):
                try:
                    found = table[text[start:end]]
                except KeyError:
                    break
                if found is not None:
                    edges[end].append((start, found[0], total + alpha * found[1]))
                    single = single or end == start + 1
            if not single:
                edges[start + 1].append((start, self._unknown, total + alpha * self._unknown_score))
        if size:
            totals[size] = _log_sum(edges[size])
        return totals, edges


class Merges:
    """A BPE model: the best pair of neighbours is merged again and again, and each merge may be left out."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._unknown = _unknown(pieces)
        kinds = (NORMAL, USER_DEFINED, UNUSED)
        self._ids = {piece.text: i for i, piece in enumerate(pieces) if piece.type in kinds}
        self._scores = {piece.text: piece.score for piece in pieces if piece.type in kinds}
        self._unused = {piece.text for piece in pieces if piece.type == UNUSED}
        wanted = [piece.text for piece in pieces if piece.type == USER_DEFINED]
        self._wanted = sorted(wanted, key=len, reverse=True)
        self._whole = frozenset(wanted)

    def split(self, text: str, *, alpha: float, rng: random.Random) -> list[Part]:
        """Merge until no pair is left; a merge is left out with probability `alpha`."""
        halves: dict[str, tuple[str, str]] = {}
        scores, frozen = self._scores, self._whole

        def rank(left: str, right: str) -> float | None:
            score = scores.get(left + right)
            if score is None or left in frozen or right in frozen:
                return None
            if left + right in self._unused:
                halves[left + right] = left, right
            return -score

        symbols = merged(self._symbols(text), rank, left_out=lambda: rng.random() < alpha)
        return [part for symbol in symbols for part in self._parts(symbol, halves)]

    def _symbols(self, text: str) -> list[str]:
        """What merging begins with: characters, and the pieces that their user wants to have whole."""
        symbols = []
        start = 0
        while start < len(text):
            wanted = next((piece for piece in self._wanted if text.startswith(piece, start)), text[start])
            symbols.append(wanted)
            start += len(wanted)
        return symbols

    def _parts(self, symbol: str, halves: dict[str, tuple[str, str]]) -> list[Part]:
        """A symbol with its id; one that is not in use falls into what it was merged from."""
        if symbol in self._unused and symbol in halves:
            return [part for half in halves[symbol] for part in self._parts(half, halves)]
        return [(symbol, self._ids.get(symbol, self._unknown))]


def merged(
    symbols: Sequence[str], rank: Callable[[str, str], float | None], *, left_out: Callable[[], bool] = lambda: False
) -> list[str]:
    """Merge neighbours, the pair of the lowest rank first and of several the leftmost, but for what is `left_out`."""
    parts = list(symbols)
    after, before = list(range(1, len(parts) + 1)), list(range(-1, len(parts) - 1))
    waiting: list[tuple[float, int, int, str]] = []

    def consider(left: int, right: int) -> None:
        if left >= 0 and right < len(parts) and (found := rank(parts[left], parts[right])) is not None:
            heapq.heappush(waiting, (found, left, right, parts[left] + parts[right]))

    for left in range(len(parts) - 1):
        consider(left, left + 1)
    while waiting:
        _, left, right, whole = heapq.heappop(waiting)
        # One of the two may be another symbol by now, or part of one.
        if not parts[left] or not parts[right] or parts[left] + parts[right] != whole or left_out():
            continue
        parts[left], parts[right] = whole, ""
        after[left] = after[right]
        if after[left] < len(parts):
            before[after[left]] = left
        consider(before[left], left)
        consider(left, after[left])
    return [part for part in parts if part]


def _log_sum(edges: Sequence[Edge]) -> float:
    """Log of the sum of weights that are given as logs."""
    if len(edges) == 1:
        return edges[0][2]
    most = max(weight for _, _, weight in edges)
    return most + math.log(sum(math.exp(weight - most) for _, _, weight in edges))


def _settings(model: bytes) -> dict[int, int]:
    """The settings of a model that matter here, by field number."""
    found = {MODEL_TYPE: UNIGRAM, BYTE_FALLBACK: 0}
    for number, message in sentencepiece_check.fields(memoryview(model)):
        if number == TRAINER and isinstance(message, memoryview):
            for field, value in sentencepiece_check.fields(message):
                if field in found and isinstance(value, int):
                    found[field] = value
    return found


def _unknown(pieces: Sequence[Piece]) -> int:
    return next(i for i, piece in enumerate(pieces) if piece.type == UNKNOWN)
