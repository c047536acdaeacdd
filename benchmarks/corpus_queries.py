"""What the page Over a corpus asks: roll-ups and DuckDB over 3.6 million rows of heads, against pandas.

    python -m benchmarks.corpus_queries --lines 100000 --turns 15
    python -m benchmarks.corpus_queries --run OUT/KEY          # a run that was measured

Without --run, numbers are drawn at random into a temporary folder: 36 heads a line, in shards of 2,000 lines. Cold is
the first question in a process that has DuckDB loaded: footers are checked and a connection is made; files are in the
system's cache. Pandas reads the columns that it needs of the same files and then does the same. Both have to find the
same lines.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from glassformer.extensions.corpus.library import folder, queries
from glassformer.extensions.corpus.library.folder import Run
from glassformer.extensions.corpus.library.queries import Asked, Condition, Contains, Disagrees, LooksAt, OfSentence
from glassformer.extensions.corpus.library.tables import NAMES, CorpusOptions, Key, Table
from tests.extensions.corpus.library.made_runs import write_run
from transformer.model.anatomy import Kind

HEAD: tuple[Kind, int, int] = ("encoder", 2, 1)
BAR = 0.5  # seconds, of a page's query
N = 50
MARKS = r"[^\w\s<>]+"  # of the pieces that are made up


@dataclass(frozen=True)
class Question:
    """One question in both ways; each gives numbers that can be compared."""

    name: str
    ours: Callable[[], Any]
    by_pandas: Callable[[], Any]


@contextmanager
def a_run(given: Path | None, lines: int) -> Iterator[Run]:
    """The run that was given, or one that is made up."""
    if given is not None:
        yield folder.open_run(given)
        return
    with tempfile.TemporaryDirectory() as out:
        yield folder.open_run(write_run(Path(out), lines=lines, options=CorpusOptions(effect=True, shard=2_000)))


@dataclass(frozen=True)
class Pandas:
    """The answers of pandas."""

    run: Run
    word: str

    def read(self, table: Table, *columns: str) -> pd.DataFrame:
        """Columns of all files of a table."""
        paths = [self.run.folder / name for name in self.run.names(table)]
        return pq.read_table(paths, columns=["line", *columns]).to_pandas()  # what pandas' read_parquet does

    def of_head(self, *columns: str) -> pd.DataFrame:
        """The rows of one head."""
        rows = self.read("heads", "kind", "layer", "head", *columns)
        return rows[(rows["kind"] == HEAD[0]) & (rows["layer"] == HEAD[1]) & (rows["head"] == HEAD[2])]

    def means(self) -> Any:
        """The mean of one measure, after those of all."""
        rows = self.read("heads", "kind", "layer", "head", *NAMES)
        groups = rows.groupby(["kind", "layer", "head"], observed=True)[list(NAMES)].agg(["count", "mean", "std"])
        return groups.loc[HEAD, ("entropy", "mean")]

    def largest(self) -> list[int]:
        """The lines with the largest entropy."""
        return first(self.of_head("entropy").dropna(), "entropy")

    def line(self) -> int:
        """How many heads a line has, after all were read."""
        return int((self.read("heads", "kind", *NAMES)["line"] == self.run.about.lines // 2 + 1).sum())

    def looks(self, pattern: str) -> list[int]:
        """The lines in which the largest weight is on such a piece."""
        rows = self.of_head("peak", "peak_key_piece")
        bare = rows["peak_key_piece"].astype(str).str.replace("▁", "")
        return first(rows[(rows["peak"] >= np.float32(0.3)) & bare.str.fullmatch(pattern)], "peak")

    def three(self) -> list[int]:
        """The lines that fit three conditions."""
        texts = self.read("sentences", "worst_rank", "source")
        texts = texts[(texts["worst_rank"] > 5) & texts["source"].str.lower().str.contains(self.word, regex=False)]
        rows = self.of_head("entropy")
        return first(rows[rows["entropy"] <= 1.5].merge(texts, on="line"), "entropy", ascending=True)

    def disagree(self) -> float:
        """How far the ranks of attention and effect are apart at most."""
        rows = self.of_head("entropy", "effect").dropna()
        ranks = (-rows["entropy"]).rank(method="min") - rows["effect"].rank(method="min")
        return float(ranks.max()) / (len(rows) - 1)


def first(rows: pd.DataFrame, by: str, *, ascending: bool = False) -> list[int]:
    """The first lines of a table, sorted."""
    return rows.sort_values([by, "line"], ascending=[ascending, True])["line"].head(N).tolist()


def questions(run: Run, word: str) -> Iterator[Question]:
    """What the page asks, in the order of its parts."""
    peer, middle = Pandas(run, word), run.about.lines // 2 + 1

    def found(*conditions: Condition) -> list[int]:
        return [hit.line for hit in queries.search(run, conditions, n=N).hits]

    def line() -> int:
        whole = queries.line(run, middle)
        return len(whole.heads) if whole else 0

    three = (Asked(*HEAD, "entropy", at_most=1.5), OfSentence("worst_rank", 6), Contains("source", word))
    summary = Key(*HEAD, "entropy")
    yield Question("all heads: means and intervals", lambda: folder.summaries(run)[summary].mean, peer.means)
    yield Question(f"the {N} most extreme lines", lambda: found(Asked(*HEAD, "entropy")), peer.largest)
    yield Question("one line with all its heads", line, peer.line)
    yield Question("weight ≥ 0.3 at a comma", lambda: found(LooksAt(*HEAD, 0.3, ",")), lambda: peer.looks(","))
    yield Question("weight ≥ 0.3 at punctuation", lambda: found(LooksAt(*HEAD, 0.3)), lambda: peer.looks(MARKS))
    yield Question("entropy, rank and text", lambda: found(*three), peer.three)
    if run.about.options.effect:
        asked = [Disagrees(*HEAD, "entropy")]
        yield Question(
            "attention and effect disagree", lambda: queries.search(run, asked, n=N).hits[0].values[0], peer.disagree
        )


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def forget() -> None:
    """As in a process that was asked nothing yet."""
    queries._database.cache_clear()
    folder.summaries.cache_clear()


def of_a_million(run: Run) -> float:
    """Seconds of reading the roll-ups of a million lines: this run's files under many names."""
    times = -(-1_000_000 // run.about.options.shard)
    with tempfile.TemporaryDirectory(dir=run.folder.parent) as out:
        many = Path(out) / run.key
        many.mkdir()
        for shard in range(times):
            for table in folder.NEEDED:
                name = folder.file_name(table, run.done[shard % len(run.done)])
                os.link(run.folder / name, many / folder.file_name(table, shard))
        about = json.loads((run.folder / folder.ABOUT).read_bytes())
        (many / folder.ABOUT).write_text(json.dumps(about | {"lines": 1_000_000, "shards": times}))
        seconds, _ = timed(lambda: folder.summaries(folder.open_run(many)))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--run", type=Path, help="the folder of a run")
    parser.add_argument("--word", default="dog", help="what some sources contain, in small letters")
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with a_run(given.run, given.lines) as run:
        rows = sum(summary.n for key, summary in folder.summaries(run).items() if key.measure == "entropy")
        print(f"{run.lines_done:,} lines, {rows:,} rows of heads; load {os.getloadavg()[0]:.1f}; milliseconds\n")
        queries.search(run, [])  # DuckDB is loaded
        print("| question | cold | warm | warm, p95 | pandas | ratio |\n|---|---|---|---|---|---|")
        worst = 0.0
        for question in questions(run, given.word):
            pandas, wanted = min((timed(question.by_pandas) for _ in range(2)), key=lambda found: found[0])
            forget()
            cold, found = timed(question.ours)
            assert found == wanted or np.allclose(found, wanted), (question.name, found, wanted)
            warm = [timed(question.ours)[0] for _ in range(given.turns)]
            median, p95 = np.quantile(warm, [0.5, 0.95])
            worst = max(worst, cold, p95)
            cells = " | ".join(f"{1e3 * cell:,.0f}" for cell in (cold, median, p95, pandas))
            against = cold if median < 1e-3 else median  # what is kept in memory is no match
            print(f"| {question.name} | {cells} | {pandas / against:,.0f} |")
        print(f"\nSlowest {worst:.2f} s, cold or p95; the bar is {BAR} s. Load {os.getloadavg()[0]:.1f}.")
        print(f"Roll-ups of a million lines, read and added up: {of_a_million(run):.2f} s.")


if __name__ == "__main__":
    main()
