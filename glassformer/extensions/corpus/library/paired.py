"""Two corpus runs over the same file, line by line: how much their heads and their scores differ, with intervals.

A difference is second minus first, of the lines that both have: as both read the same sentence, what makes a sentence
easy or hard for both is not in it, and its interval is much narrower than those of two means.

The interval of a mean difference is that of the normal distribution: mean ± 1.96 s / √n, s the standard deviation of
the differences. One of 20 such intervals excludes 0 although nothing differs, so a table of hundreds has some.

Source: Koehn (2004), "Statistical Significance Tests for Machine Translation Evaluation", for scores of a corpus,
which are no means: both runs are scored on the same lines, drawn with replacement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from glassformer.extensions.corpus.library import queries
from glassformer.extensions.corpus.library.conditions import Head
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.tables import NAMES, Name
from transformer.analysis.sampled_outputs import NORMAL_95
from transformer.errors import DataError

LEAST_LINES: Final = 2  # fewer have no standard deviation
CHANCE: Final = 0.05  # share of intervals that exclude 0 although nothing differs


@dataclass(frozen=True)
class PairedDifference:
    """How much two runs differ in one number, over the lines that both have."""

    n: int  # lines
    first: float  # the mean of the first run
    second: float
    low: float | None  # the interval of the difference, 95 %; None for fewer than two lines
    high: float | None

    @property
    def mean(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def excludes_0(self) -> bool:
        """Whether the interval has 0 outside."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True)
class LinePair:
    """One line in both runs."""

    line: int  # from 1
    source: str
    target: str | None  # the reference
    first: float
    second: float


def by_head(first: Run, second: Run, name: Name) -> dict[Head, PairedDifference]:
    """The difference of a measure for each head that both runs have.

    A `DataError` where the runs do not have the same lines; others are those of `queries.connected`.
    """
    query = f"""SELECT kind, layer, head, {_STATISTICS} FROM ({_heads(name, "a")}) a JOIN ({_heads(name, "b")}) b
        USING (kind, layer, head, line) GROUP BY ALL ORDER BY ALL"""
    found = _ask(first, second, query, {})
    return {(kind, layer, head): difference(*row) for kind, layer, head, *row in found}


def of_log_prob(first: Run, second: Run) -> tuple[PairedDifference | None, bool]:
    """The difference of a line's log-probability, in nats, and whether each line has as many pieces in both.

    Only then can losses per piece be compared. None where no line has it in both runs. Errors are those of `by_head`.
    """
    table = "SELECT line, n_target, log_prob::DOUBLE AS x FROM read_parquet(${}_sentences) WHERE log_prob IS NOT NULL"
    query = f"""SELECT {_STATISTICS}, coalesce(bool_and(a.n_target = b.n_target), false)
        FROM ({table.format("a")}) a JOIN ({table.format("b")}) b USING (line)"""
    *row, alike = _ask(first, second, query, {})[0]
    return (difference(*row) if row[0] else None), bool(alike)


def most_different(first: Run, second: Run, name: Name, head: Head, count: int) -> list[LinePair]:
    """The lines in which a head's measure differs most, the largest difference of either sign first.

    Errors are those of `by_head`.
    """
    one, other = (f"SELECT line, x FROM ({_heads(name, side)})" for side in "ab")
    mine = "WHERE kind = $kind AND layer = $layer AND head = $head"
    query = f"""WITH pairs AS (
            SELECT line, a.x AS x, b.x AS y FROM ({one} {mine}) a JOIN ({other} {mine}) b USING (line)
            ORDER BY abs(b.x - a.x) DESC, line LIMIT $count)
        SELECT line, source, target, x, y FROM pairs JOIN read_parquet($a_sentences) USING (line)
        ORDER BY abs(y - x) DESC, line"""
    values = dict(zip(("kind", "layer", "head"), head, strict=True))
    return [LinePair(*row) for row in _ask(first, second, query, values | {"count": count})]


def difference(n: int, first: float, second: float, mean: float, deviation: float | None) -> PairedDifference:
    """A difference over `n` lines: both runs' means, then mean and standard deviation of the differences."""
    if n < LEAST_LINES or deviation is None:
        return PairedDifference(n, first, second, None, None)
    reach = NORMAL_95 * deviation / n**0.5
    return PairedDifference(n, first, second, mean - reach, mean + reach)


# ---------------------------------------------------------------- DuckDB

_STATISTICS: Final = "count(*), avg(a.x), avg(b.x), avg(b.x - a.x), stddev_samp(b.x - a.x)"


def _heads(name: Name, side: str) -> str:
    """The rows of a run's table of heads that have a measure."""
    if name not in NAMES:  # it is written into the query
        raise DataError(
            "{name} is not a measure of a corpus run; there are {names}.", name=name, names=", ".join(NAMES)
        )
    return f"""SELECT kind, layer, head, line, "{name}"::DOUBLE AS x FROM read_parquet(${side}_heads)
        WHERE isfinite(x)"""


def _ask(first: Run, second: Run, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if first.about.sha256 != second.about.sha256:
        raise DataError(
            "{first} and {second} do not have the same lines, so they cannot be compared line by line.",
            first=first.key,
            second=second.key,
        )
    files = {
        f"{side}_{table}": queries.paths(run, table)
        for side, run in (("a", first), ("b", second))
        for table in ("sentences", "heads")
        if f"${side}_{table}" in query
    }
    with queries.connected(first, second) as connection:
        return connection.execute(query, {**values, **files}).fetchall()
