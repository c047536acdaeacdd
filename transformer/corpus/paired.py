"""Two corpus runs over the same file, line by line: how much their heads and their scores differ, with intervals.

A difference is second minus first, of the lines that both have: as both read the same sentence, what makes a sentence
easy or hard for both is not in it, and its interval is much narrower than those of two means.

The interval of a mean difference is that of the normal distribution: mean ± 1.96 s / √n, s the standard deviation of
the differences. One of 20 such intervals excludes 0 although nothing differs, so a table of hundreds has some.

Source: Koehn (2004), "Statistical Significance Tests for Machine Translation Evaluation", for scores of a corpus,
which are no means: both runs are scored on the same lines, drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from transformer.corpus.tables import NAMES, Name
from transformer.errors import DataError
from transformer.model.anatomy import Kind

NORMAL: Final = 1.959964  # standard deviations on each side of the mean, of 95 %
LEAST_LINES: Final = 2  # fewer have no standard deviation
CHANCE: Final = 0.05  # share of intervals that exclude 0 although nothing differs


@dataclass(frozen=True)
class Difference:
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


Head = tuple[Kind, int, int]
"""Kind of attention, layer and head, from 1."""


def by_head(first: Path, second: Path, name: Name) -> dict[Head, Difference]:
    """The difference of a measure for each head that both runs have, from their folders.

    Raises `DataError` if a run has no table of heads.
    """
    found = _ask(
        f"""SELECT kind, layer, head, {_STATISTICS}
        FROM ({_heads(name)}) a JOIN ({_heads(name)}) b USING (line, kind, layer, head)
        GROUP BY ALL ORDER BY ALL""",
        [_files(first, "heads"), _files(second, "heads")],
    )
    return {(kind, layer, head): difference(*row) for kind, layer, head, *row in found}


def of_loss(first: Path, second: Path) -> tuple[Difference | None, bool]:
    """The difference of a line's log-probability, in nats, and whether both cut each output into as many pieces.

    Only then are losses per piece comparable. None where no line has it in both runs.
    """
    found = _ask(
        f"""SELECT {_STATISTICS}, coalesce(bool_and(a.n_target = b.n_target), false)
        FROM ({_SENTENCES}) a JOIN ({_SENTENCES}) b USING (line)""",
        [_files(first, "sentences"), _files(second, "sentences")],
    )
    *row, alike = found[0]
    return (difference(*row) if row[0] else None), bool(alike)


def most_different(first: Path, second: Path, name: Name, head: Head, count: int) -> list[LinePair]:
    """The lines in which a head's measure differs most, the largest difference of either sign first."""
    found = _ask(
        f"""WITH pairs AS (
            SELECT line, a.x AS x, b.x AS y FROM ({_heads(name, one=True)}) a JOIN ({_heads(name, one=True)}) b
            USING (line) ORDER BY abs(b.x - a.x) DESC, line LIMIT {int(count)})
        SELECT line, source, target, x, y FROM pairs JOIN read_parquet(?) USING (line)
        ORDER BY abs(y - x) DESC, line""",
        [_files(first, "heads"), *head, _files(second, "heads"), *head, _files(first, "sentences")],
    )
    return [LinePair(*row) for row in found]


def difference(n: int, first: float, second: float, mean: float, deviation: float | None) -> Difference:
    """A difference over `n` lines: both runs' means, then mean and standard deviation of the differences."""
    if n < LEAST_LINES or deviation is None:
        return Difference(n, first, second, None, None)
    reach = NORMAL * deviation / n**0.5
    return Difference(n, first, second, mean - reach, mean + reach)


# ---------------------------------------------------------------- DuckDB

_STATISTICS: Final = "count(*), avg(a.x), avg(b.x), avg(b.x - a.x), stddev_samp(b.x - a.x)"
_SENTENCES: Final = "SELECT line, n_target, log_prob::DOUBLE AS x FROM read_parquet(?) WHERE log_prob IS NOT NULL"


def _heads(name: Name, *, one: bool = False) -> str:
    """The rows of the table of heads that have a measure; of `one` head, which three more values then name."""
    if name not in NAMES:  # it is written into the query
        raise DataError("{name} is no measure of a corpus run; there are {names}.", name=name, names=", ".join(NAMES))
    mine = "AND kind = ? AND layer = ? AND head = ?" if one else ""
    return f"""SELECT line, kind, layer, head, "{name}"::DOUBLE AS x FROM read_parquet(?)
        WHERE "{name}" IS NOT NULL {mine}"""


def _files(folder: Path, table: str) -> list[str]:
    files = sorted(map(str, folder.glob(f"{table}-*.parquet")))
    if not files:
        raise DataError("{folder} has no table of {table}; run the corpus again.", folder=folder.name, table=table)
    return files


def _ask(query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    import duckdb  # an extra

    with duckdb.connect() as connection:
        return connection.execute(query, values).fetchall()
