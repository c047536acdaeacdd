"""Scores of a corpus run (BLEU, chrF, loss, alignment error), differences of two runs, 95 % bootstrap intervals.

BLEU, chrF, loss and alignment error rate are not means over lines: each is a function of sums over lines. The lines'
statistics are added up, which gives exactly sacrebleu's score of the corpus. Intervals come from the percentile
bootstrap: a thousand scores of as many lines, drawn with replacement. Draws are seeded, and made shard by shard.

A share of lines, as of exact ones, has Wilson's interval, and a difference one computed from two of these. They have a
width also where all lines are right, or none, and every draw says the same.

A difference is second minus first, on the lines that both runs have. Both read the same sentences, so what makes a
sentence hard for both cancels out, and the interval is much narrower than those of two means. That of a mean is
normal: mean ± 1.96 s / √n, s the standard deviation of the differences. One of 20 such intervals excludes 0 although
nothing differs, so a table of hundreds has some.

Source: Koehn, "Statistical Significance Tests for Machine Translation Evaluation" (2004), section 3, for the bootstrap;
Post, "A Call for Clarity in Reporting BLEU Scores" (2018), for the statistics; Newcombe, "Improved Confidence Intervals
for the Difference between Binomial Proportions Based on Paired Data" (1998), method 10.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from glassformer.extensions.corpus.library import queries
from glassformer.extensions.corpus.library.folder import Run, open_run
from glassformer.extensions.corpus.library.measures import LINKS
from glassformer.extensions.corpus.library.queries import Head, Hit
from glassformer.extensions.corpus.library.tables import NAMES, Name
from transformer.analysis.alignment import GoldPair, count_links, diagonal_sources
from transformer.analysis.sampled_outputs import NORMAL_95, interval
from transformer.analysis.word_merging import Floats
from transformer.errors import DataError

N_DRAWS: Final = 1_000
_LEVEL: Final = (2.5, 97.5)  # percentiles
_PLAIN: Final = ("log_prob", "n_target", "exact")
_LISTS: Final = {"bleu": 10, "chrf": 18}  # how many statistics sacrebleu has of a line
_NAMES: Final = [*_PLAIN, *_LISTS, "problem"]
_GOLD: Final = ["line", "sure"]
_COUNTED: Final = {"loss": 2, "exact": 4, "bleu": 5, "chrf": 6}  # the statistic that is 0 where nothing has the score
_AT_ONCE: Final = 2_000  # lines
_START: Final = {"bleu": 7, "chrf": 17}
_WIDTH: Final = _START["chrf"] + _LISTS["chrf"]

Score = Callable[[Floats], float]  # of statistics added up over lines


@dataclass(frozen=True)
class Figure:
    """A score with its 95 % interval; the scores of draws that have none (nothing to divide by) do not count."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class HeadAer:
    """The alignment error rate of one head of the cross-attention."""

    layer: int  # from 1
    head: int  # from 1
    predicts: Figure  # 0 to 1, where a piece's row is the one that predicts it
    reads: Figure  # where it is the row that reads it (see `alignment`)


@dataclass(frozen=True, kw_only=True)
class CorpusScores:
    """What a run says as a whole; None where its lines do not have it."""

    n_lines: int  # that were measured
    left_out: dict[str, int]  # why lines were not -> how many, the most frequent first
    loss: Figure | None  # nats per predicted piece, over all pieces
    exact: Figure | None  # share of lines
    bleu: Figure | None  # 0 to 100
    chrf: Figure | None  # 0 to 100
    heads: tuple[HeadAer, ...]  # by layer and head; empty without gold alignments


@dataclass(frozen=True)
class PairedScore:
    """A score of two runs over the same lines."""

    first: float
    second: float
    difference: Figure  # second minus first


def scores(folder: Path, *, n_draws: int = N_DRAWS, seed: int = 0) -> CorpusScores:
    """The scores of the shards in a run's folder; a `ModuleNotFoundError` where sacrebleu is needed and not there."""
    left_out: Counter[str] = Counter()
    for path in _sentences(folder):
        left_out.update(pq.read_table(path, columns=_NAMES[-1:], use_threads=False)["problem"].drop_null().to_pylist())
    sums, drawn = _resampled(partial(_statistics, folder), n_draws=n_draws, seed=seed)
    n, _, n_pieces, _, n_exact, n_bleu, n_chrf = sums[: _START["bleu"]]

    def figure(score: Score) -> Figure:
        return _figure(score, sums, drawn)

    return CorpusScores(
        n_lines=int(n),
        left_out=dict(left_out.most_common()),
        loss=figure(_score("loss")) if n_pieces else None,
        exact=Figure(sums[3] / n_exact, *interval(int(sums[3]), int(n_exact))) if n_exact else None,
        bleu=figure(_score("bleu")) if n_bleu else None,
        chrf=figure(_score("chrf")) if n_chrf else None,
        heads=tuple(_aer(folder, n_draws=n_draws, seed=seed)),
    )


def paired(first: Path, second: Path, *, n_draws: int = N_DRAWS, seed: int = 0) -> dict[str, PairedScore]:
    """The scores of two runs over the same lines, on the lines that both have measured, with the same draws.

    A `DataError` where one measured its own output and the other the reference: these are different texts.
    """
    if len({open_run(one).about.options.decode for one in (first, second)}) > 1:
        raise DataError(
            "{first} and {second} cannot be compared: one of them measured the model's own output (--decode), the "
            "other the reference. Measure both in the same way.",
            first=first.name,
            second=second.name,
        )
    (lines, one), (others, other) = _by_line(first), _by_line(second)
    _, here, there = np.intersect1d(lines, others, return_indices=True)
    both = np.hstack([one[here], other[there]])
    shards = np.array_split(both, len(both) // _AT_ONCE + 1)
    sums, drawn = _resampled(shards.copy, n_draws=n_draws, seed=seed)
    width, found = one.shape[1], {}
    for name, n_lines in _COUNTED.items():
        if sums[n_lines] and sums[width + n_lines]:
            score = _score(name)
            gap = _figure(lambda both, of=score: of(both[width:]) - of(both[:width]), sums, drawn)  # type: ignore[misc]
            if name == "exact":
                known = (one[here, 4] > 0) & (other[there, 4] > 0)
                gap = _difference_of_shares(one[here, 3][known] > 0, other[there, 3][known] > 0)
            found[name] = PairedScore(float(score(sums[:width])), float(score(sums[width:])), gap)
    return found


def _difference_of_shares(first: np.ndarray, second: np.ndarray) -> Figure:
    """Second minus first share of the same lines, from the interval of each and how far they go together (phi)."""
    n, p, q = len(first), float(first.mean()), float(second.mean())
    (p_low, p_high), (q_low, q_high) = interval(int(first.sum()), n), interval(int(second.sum()), n)
    product = float(
        (first & second).sum() * (~first & ~second).sum() - (first & ~second).sum() * (~first & second).sum()
    )
    size = n * n * math.sqrt(p * (1 - p) * q * (1 - q))
    phi = (max(product - n / 2, 0.0) if product > 0 else product) / size if size else 0.0

    def reach(a: float, b: float) -> float:
        return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))

    return Figure(q - p, q - p - reach(q - q_low, p_high - p), q - p + reach(q_high - q, p - p_low))


def diagonal(folder: Path, gold: Mapping[int, GoldPair]) -> float | None:
    """The error rate without a model, each target word linked at its relative place; None if no lines are scored."""
    tables = (pq.read_table(path, columns=_GOLD, use_threads=False).drop_null() for path in _sentences(folder))
    pairs = [gold[line] for table in tables for line in table["line"].to_pylist()]
    sizes = [(one, len(one.target), len(one.source)) for one in pairs]
    found = [count_links(diagonal_sources(j, i), one.links, n_source=i) for one, j, i in sizes]
    return float(sum(found[1:], start=found[0]).aer()) if found else None


def _by_line(folder: Path) -> tuple[np.ndarray, Floats]:
    """The numbers of the lines that were measured, and the statistics of each."""
    rows = [pq.read_table(path, columns=["line", "problem"]) for path in _sentences(folder)]
    lines = [table.filter(pc.is_null(table["problem"]))["line"].to_numpy() for table in rows]
    return np.concatenate(lines), np.concatenate(list(_statistics(folder)))


def _sentences(folder: Path) -> list[Path]:
    """The tables of sentences of the shards that are done, whose roll-up is written last, by their numbers."""
    found = sorted(folder.glob("sentences-*.parquet"))
    return [path for path in found if path.with_name(path.name.replace("sentences", "rollup")).exists()]


def _statistics(folder: Path) -> Iterator[Floats]:
    """Of each shard, of each line that was measured, float64 [line, 35].

    1; log-probability, pieces, exact; whether it has exact, BLEU's and chrF's statistics; those of BLEU and of chrF.
    """
    for path in _sentences(folder):
        rows = pq.read_table(path, columns=_NAMES, use_threads=False)
        rows = rows.filter(pc.is_null(rows["problem"]))
        plain = [pc.fill_null(rows[name].cast("float64"), 0.0).to_numpy() for name in _PLAIN]
        there = [rows[name].is_valid().to_numpy() for name in ("exact", *_LISTS)]
        lists = [_spread(rows[name].combine_chunks(), size) for name, size in _LISTS.items()]
        yield np.column_stack([np.ones(len(rows)), *plain, *there, *lists])


def _spread(lists: Any, size: int) -> Floats:
    """An Arrow array of lists as an array [line, size]; zeros where there is none."""
    rows = np.zeros((len(lists), size))
    rows[lists.is_valid().to_numpy(zero_copy_only=False)] = lists.flatten().to_numpy().reshape(-1, size)
    return rows


def _resampled(read: Callable[[], Iterable[Floats]], *, n_draws: int, seed: int) -> tuple[Floats, Floats]:
    """The sum over all lines [statistic], and over the lines of each draw [draw, statistic].

    A draw's number of lines per shard is drawn first, then the lines: the same as drawing from all. `read` yields the
    shards again, so only one is in memory.
    """
    found = [(len(one), one.sum(axis=0)) for one in read()] or [(0, np.zeros(_WIDTH))]
    sizes, sums = [n for n, _ in found], np.sum([one for _, one in found], axis=0)
    drawn = np.zeros((n_draws, len(sums)))
    if total := sum(sizes):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(total, np.array(sizes) / total, size=n_draws)  # [draw, shard]
        for one, n_of_each in zip(read(), counts.T, strict=True):
            for draw, n in enumerate(n_of_each):
                drawn[draw] += np.bincount(rng.integers(len(one), size=n), minlength=len(one)) @ one if n else 0.0
    return sums, drawn


def _figure(score: Score, sums: Floats, drawn: Floats) -> Figure:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.array([score(one) for one in drawn])
        low, high = np.nanpercentile(found, _LEVEL)
        return Figure(float(score(sums)), float(low), float(high))


def _score(name: str) -> Score:
    if name == "loss":
        return lambda found: -found[1] / found[2]
    if name == "exact":
        return lambda found: found[3] / found[4]
    from sacrebleu import BLEU, CHRF

    metric = BLEU() if name == "bleu" else CHRF()
    mine = slice(_START[name], _START[name] + _LISTS[name])

    def of(found: Floats) -> float:
        if not found[_COUNTED[name]]:  # a draw of lines without a reference; sacrebleu says 0
            return math.nan
        return float(metric._compute_score_from_stats([int(one) for one in found[mine]]).score)

    return of


def _aer(folder: Path, *, n_draws: int, seed: int) -> Iterator[HeadAer]:
    """The error rates of each head; all heads meet the same draws of lines."""
    by_shard = [one for one in _links(folder) if one]
    for layer, head in sorted({key for one in by_shard for key in one}):
        shards = [one[layer, head] for one in by_shard]
        sums, drawn = _resampled(shards.copy, n_draws=n_draws, seed=seed)
        yield HeadAer(layer, head, *(_figure(partial(_error_rate, place), sums, drawn) for place in (1, 3)))


def _error_rate(place: int, found: Floats) -> float:
    """From a column of `_links`: the sure links among those found, next to it the possible ones."""
    return float(1.0 - (found[place] + found[place + 1]) / (found[0] + found[5]))


def _links(folder: Path) -> Iterator[dict[tuple[int, int], Floats]]:
    """Of each shard, of each head of the cross-attention, of each line with gold, float64 [line, 6].

    The head's links; how many are sure and possible by the one row, and by the other; how many sure links there are.
    """
    for path in _sentences(folder):
        gold = pq.read_table(path, columns=_GOLD, use_threads=False).drop_null()
        if not len(gold):
            continue
        sure = dict(zip(gold["line"].to_pylist(), gold["sure"].to_pylist(), strict=True))
        file = path.with_name(path.name.replace("sentences", "heads"))
        names = ["line", "layer", "head", *LINKS]
        rows = pq.read_table(file, columns=names, filters=[("kind", "==", "cross")], use_threads=False).drop_null()
        line, layer, head, *counts = (rows[name].to_numpy() for name in names)
        table = np.column_stack([*counts, [sure[one] for one in line.tolist()]]).astype(float)
        places = sorted(set(zip(layer.tolist(), head.tolist(), strict=True)))
        yield {(i, j): table[(layer == i) & (head == j)] for i, j in places}


# ------------------------------------------------------------------------------------------------ means of two runs

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


def by_head(first: Run, second: Run, name: Name) -> dict[Head, PairedDifference]:
    """The difference of a measure for each head that both runs have.

    A `DataError` where the runs have different lines; other errors are those of `queries.connected`.
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


def most_different(first: Run, second: Run, name: Name, head: Head, count: int) -> list[Hit]:
    """The lines whose measure of a head differs most, the largest absolute difference first; errors as of `by_head`.

    Their values are the difference (second minus first), the first run's and the second's.
    """
    one, other = (f"SELECT line, x FROM ({_heads(name, side)})" for side in "ab")
    mine = "WHERE kind = $kind AND layer = $layer AND head = $head"
    query = f"""WITH pairs AS (
            SELECT line, a.x AS x, b.x AS y FROM ({one} {mine}) a JOIN ({other} {mine}) b USING (line)
            ORDER BY abs(b.x - a.x) DESC, line LIMIT $count)
        SELECT line, source, target, y - x, x, y FROM pairs JOIN read_parquet($a_sentences) USING (line)
        ORDER BY abs(y - x) DESC, line"""
    values = dict(zip(("kind", "layer", "head"), head, strict=True))
    rows = _ask(first, second, query, values | {"count": count})
    return [Hit(line, source, target, values=tuple(numbers)) for line, source, target, *numbers in rows]


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
    queries.check_name(name, NAMES)
    return f"""SELECT kind, layer, head, line, "{name}"::DOUBLE AS x FROM read_parquet(${side}_heads)
        WHERE isfinite(x)"""


def _ask(first: Run, second: Run, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    if first.about.sha256 != second.about.sha256:
        raise DataError(
            "{first} and {second} do not have the same lines, so they cannot be compared line by line.",
            first=first.key,
            second=second.key,
        )
    return queries.fetch_of({"a_": first, "b_": second}, query, values)
