"""Tables of a corpus run: Arrow schemas, roll-ups of lines into bins, their sums; records of a line and options.

`sentences` has one row per line of the file; `heads` one per line and head; `vectors` one per token and head of the
first lines, if requested. A value that a line or head does not have is null, never 0 or NaN.

Lines, layers and heads count from 1, as in the app; tokens (queries, keys) and steps from 0, as in the library.

A roll-up has, for each kind, layer, head and measure, the number of lines that have the measure, its sum, its sum of
squares, and how many lines fall into each bin. All of these add: the sum of the shards' roll-ups, in any order, is the
roll-up of the corpus, counts exactly, sums to the last bits of float64.

Bins are fixed and equally wide, the same for all shards of all runs, and each but the last is closed below and open
above; one bin more counts what is below all, and one what is above (`bins_of`). A quantile from bins is wrong by at
most the width of one.

Source: the interval of a mean is the usual normal approximation for independent lines: Wasserman (2004), All of
Statistics, theorem 6.16. For few lines, and for lines of one text, which are seldom independent, it is too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa

from transformer.analysis import head_statistics
from transformer.analysis.sampled_outputs import NORMAL_95
from transformer.errors import ClauseError, shown
from transformer.model.anatomy import Kind

Table = Literal["sentences", "heads", "vectors", "rollup"]
TABLES: Final[tuple[Table, ...]] = get_args(Table)
Name = Literal[head_statistics.Name, "same", "punctuation", "peak", "effect"]
# The measures of a head, means over the rows that count; see `head_statistics` for all but the last four.
NAMES: Final[tuple[Name, ...]] = (*head_statistics.NAMES, "same", "punctuation", "peak", "effect")
#   same          weight on keys with the query's own text, itself aside; 0 to 1
#   punctuation   weight on keys that are punctuation alone (Unicode categories P and S); 0 to 1
#   peak          the largest weight of the rows with two open keys or more, 0 to 1, the first of equals; where it is
#                 says `peak_query`, ... (with one open key a weight is 1, whatever the head does)
#   effect        log-probability of the output (nats) that is lost if the head writes zeros; null unless asked

_WORDS: Final = pa.dictionary(pa.int32(), pa.string())
_FEW: Final = pa.dictionary(pa.int8(), pa.string())


@dataclass(frozen=True)
class CorpusLine:
    """A line of the file."""

    number: int  # from 1
    source: str
    target: str | None = None  # the reference; None where the file has no second column


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """What is measured; all of it is in the name of the files."""

    decode: bool = False  # measure the model's own greedy output instead of the reference
    effect: bool = False  # also what is lost without each head: as many passes as there are heads
    vectors: int = 200  # so many of the first lines keep their queries and keys, or as many as 64 MB hold of a shard
    shard: int = 2_000  # lines of a shard


SENTENCES: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        ("source", pa.string()),
        ("target", pa.string()),  # the reference
        ("output", pa.string()),  # what the model wrote; null if the reference was forced
        ("n_source", pa.int16()),  # pieces, with the marks around them
        ("n_target", pa.int16()),  # predicted pieces, with the end mark; null for an encoder-only model
        ("log_prob", pa.float32()),  # of those, in nats
        ("loss", pa.float32()),  # -log_prob / n_target
        ("worst_rank", pa.int32()),  # the largest rank of a piece that was predicted, 1 = the model's first
        ("worst_step", pa.int16()),  # its step
        ("exact", pa.bool_()),  # decoded: whether output and reference are equal; forced: whether each rank is 1
        ("bleu", pa.list_(pa.int32())),  # sacreBLEU's statistics (13a or as the card says): sys_len, ref_len, ...
        ("chrf", pa.list_(pa.int32())),  # sacreBLEU's statistics of chrF2
        ("sure", pa.int32()),  # gold alignment: sure links; null without gold
        ("problem", pa.string()),  # why nothing was measured; null where it was
    ]
)
HEADS: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        pa.field("kind", _FEW, nullable=False),  # encoder, decoder, cross
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        *((name, pa.float32()) for name in NAMES),
        ("peak_query", pa.int16()),  # the row of the largest weight
        ("peak_key", pa.int16()),
        ("peak_step", pa.int16()),  # the step of that row; null for the encoder's
        ("peak_query_piece", _WORDS),
        ("peak_key_piece", _WORDS),
        # Gold alignment: this head's links, sure ones, possible ones, by the row that predicts a piece; then the latter
        # two by the row that reads it.
        ("links", pa.int32()),
        ("links_sure", pa.int32()),
        ("links_possible", pa.int32()),
        ("reads_sure", pa.int32()),
        ("reads_possible", pa.int32()),
    ]
)
VECTORS: Final = pa.schema(
    [
        pa.field("line", pa.int32(), nullable=False),
        pa.field("kind", _FEW, nullable=False),
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        pa.field("side", _FEW, nullable=False),  # query, key
        pa.field("place", pa.int16(), nullable=False),  # of the token
        ("piece", _WORDS),
        ("vector", pa.list_(pa.float32())),  # as it meets the others: after rotation, before scaling
    ]
)
ROLLUP: Final = pa.schema(
    [
        pa.field("kind", _FEW, nullable=False),
        pa.field("layer", pa.uint8(), nullable=False),
        pa.field("head", pa.uint8(), nullable=False),
        pa.field("measure", _FEW, nullable=False),
        ("n", pa.int64()),  # lines that have it
        ("sum", pa.float64()),
        ("squares", pa.float64()),  # sum of squares
        ("bins", pa.list_(pa.int32())),  # lines by value, in the same bins for all shards
    ]
)
SCHEMAS: Final[dict[Table, pa.Schema]] = {
    "sentences": SENTENCES, "heads": HEADS, "vectors": VECTORS, "rollup": ROLLUP
}  # fmt: skip


Line, Options = CorpusLine, CorpusOptions  # their names before


@dataclass(frozen=True)
class Bins:
    """Equally wide bins, without the two for what is outside."""

    least: float
    most: float  # the last bin has it
    n: int

    @property
    def width(self) -> float:
        """Of one bin, in the measure's unit."""
        return (self.most - self.least) / self.n

    @cached_property
    def edges(self) -> np.ndarray:
        """Where bins begin, and the last ends, float64 [n + 1]; nobody may change it."""
        edges = np.linspace(self.least, self.most, self.n + 1)
        edges.flags.writeable = False
        return edges

    def places(self, values: np.ndarray) -> np.ndarray:
        """The bin of each value, 0 to n + 1: 0 is below all bins, n + 1 above."""
        found = np.searchsorted(self.edges, values, side="right")
        return np.where(values == self.most, self.n, found)


_SHARE = Bins(0.0, 1.0, 100)
_BINS: dict[Name, Bins] = {
    "entropy": Bins(0.0, 12.0, 120),
    "distance": Bins(0.0, 100.0, 200),
    "effect": Bins(-10.0, 10.0, 400),
}
# Measures of how much a head attends, and whether a large value means more.
_HIGH: tuple[Name, ...] = ("norm_share", "largest", "peak")
_LOW: tuple[Name, ...] = ("entropy", "entropy_share")
ATTENDS: dict[Name, bool] = dict.fromkeys(_HIGH, True) | dict.fromkeys(_LOW, False)


def bins_of(kind: Kind, measure: Name) -> Bins:
    """The bins of a measure of heads of a kind."""
    return _SHARE if (kind, measure) == ("cross", "distance") else _BINS.get(measure, _SHARE)


@dataclass(frozen=True)
class Key:
    """Whose numbers: a head's, of one measure."""

    kind: Kind
    layer: int  # from 1
    head: int  # from 1
    measure: Name

    @property
    def whose(self) -> tuple[Kind, int, int]:
        """The head."""
        return self.kind, self.layer, self.head


@dataclass(frozen=True, eq=False)
class Summary:
    """One measure of one head over lines."""

    n: int  # lines that have it, at least 1
    sum: float
    squares: float  # sum of squares
    counts: np.ndarray  # int64 [bins + 2]: below all bins, in each, above all
    bins: Bins

    def plus(self, other: Summary) -> Summary:
        """The same measure over these lines and others."""
        n, total, squares = self.n + other.n, self.sum + other.sum, self.squares + other.squares
        return Summary(n, total, squares, self.counts + other.counts, self.bins)

    @property
    def mean(self) -> float:
        """The mean over lines."""
        return self.sum / self.n

    @property
    def deviation(self) -> float | None:
        """The standard deviation of lines (n - 1 below); None of one line."""
        if self.n < 2:
            return None
        return math.sqrt(max(self.squares - self.sum**2 / self.n, 0.0) / (self.n - 1))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the mean; None of one line."""
        if self.deviation is None:
            return None
        half = NORMAL_95 * self.deviation / math.sqrt(self.n)
        return self.mean - half, self.mean + half

    def quantile(self, share: float) -> float | None:
        """The value below which this share of lines is, within one bin; None if outside all bins.

        It is in the same bin as numpy's quantile by the method "lower".
        """
        before = np.concatenate([[0], np.cumsum(self.counts)])
        wanted = share * (self.n - 1)  # the place among the sorted lines, from 0
        place = int(np.searchsorted(before, wanted, side="right")) - 1
        if not 1 <= place <= self.bins.n:
            return None
        inside = (wanted - before[place] + 0.5) / self.counts[place]  # as if its lines were spread evenly in a bin
        return float(self.bins.least + self.bins.width * (place - 1 + min(inside, 1.0)))


Summaries = dict[Key, Summary]


def rolled_up(heads: pa.Table) -> pa.Table:
    """A table of `HEADS` added up as `ROLLUP`, sorted by kind, layer, head and measure (`NAMES`).

    Null and non-finite values do not count; a head without values has no row. The order of rows does not matter.
    """
    frame = heads.select(["kind", "layer", "head", *NAMES]).to_pandas()
    rows: list[dict[str, object]] = []
    for (kind, layer, head), of_it in frame.groupby([frame["kind"].astype(str), "layer", "head"]):
        for name in NAMES:
            key = Key(kind, int(layer), int(head), name)
            found = summary_of(key, of_it[name].to_numpy(np.float64))
            if found is not None:
                numbers = {"n": found.n, "sum": found.sum, "squares": found.squares, "bins": found.counts.tolist()}
                rows.append(vars(key) | numbers)
    return pa.Table.from_pylist(rows, schema=ROLLUP)


def summary_of(key: Key, values: np.ndarray) -> Summary | None:
    """One measure over lines, float64 [n], without those that are not finite; None if there are none."""
    there = values[np.isfinite(values)]
    if not len(there):
        return None
    bins = bins_of(key.kind, key.measure)
    counts = np.bincount(bins.places(there), minlength=bins.n + 2)
    total, squares = math.fsum(there), math.fsum(there**2)  # rounded once: the same on any processor, in any order
    return Summary(len(there), total, squares, counts, bins)


def merged(rollups: Iterable[pa.Table]) -> Summaries:
    """The roll-up of all lines, from those of the shards (each line in one shard only).

    A `ClauseError` where a table has nulls or other bins, or where its counts do not add up.
    """
    # Shards of one run have all the same rows, each with so many bins, but for a last one without some measure.
    added: dict[tuple[tuple[Key, int], ...], list[np.ndarray]] = {}
    for table in rollups:
        bins = table["bins"].combine_chunks()
        if any(column.null_count for column in (*table.columns, bins.flatten())):
            raise ClauseError("a roll-up has nulls")
        keys = map(Key, *(table[name].to_pylist() for name in ("kind", "layer", "head", "measure")))
        rows = tuple(zip(keys, bins.value_lengths().to_pylist(), strict=True))
        sums = [table[name].to_numpy().astype(np.float64) for name in ("n", "sum", "squares")]
        arrays = [*sums, bins.flatten().to_numpy().astype(np.int64)]
        added[rows] = [np.add(*pair) for pair in zip(added[rows], arrays, strict=True)] if rows in added else arrays
    found: Summaries = {}
    for rows, (*sums, counts) in added.items():
        parts = np.split(counts, np.cumsum([n for _, n in rows], dtype=int))[:-1]
        for (key, _), part, *numbers in zip(rows, parts, *(one.tolist() for one in sums), strict=True):
            summary = _checked(key, part, *numbers)
            found[key] = found[key].plus(summary) if key in found else summary
    return found


def _checked(key: Key, counts: np.ndarray, n: float, total: float, squares: float) -> Summary:
    bins = bins_of(key.kind, key.measure)
    fits = key.measure in NAMES and counts.shape == (bins.n + 2,) and min(counts) >= 0 < n
    if not (fits and counts.sum() == n and math.isfinite(total + squares)):
        raise ClauseError("a roll-up does not add up (measure {measure})", measure=shown(key.measure))
    return Summary(int(n), total, squares, counts, bins)
