"""Queries on a run's lines: conditions, each with its SQL, answered by DuckDB straight from the Parquet files.

A condition selects lines by one number; `search` joins them. No text becomes SQL: values and file names are bound
(`$name`), column names come from closed sets. DuckDB may open only the files of its runs, after `folder.check`; it has
no extensions, little memory, few threads and a time limit, and writes nothing to disk. What roll-ups alone can answer
needs no DuckDB: `folder.summaries`.

DuckDB is an extra (`corpus`), imported at the first query. Source: Raasveldt and Mühleisen (2019), "DuckDB: an
Embeddable Analytical Database"; https://duckdb.org/docs/stable/operations_manual/securing_duckdb/overview.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from glassformer.extensions.corpus.library.folder import Run, check, damaged, file_name
from glassformer.extensions.corpus.library.tables import ATTENDS, NAMES, SENTENCES, TABLES, Name, Table
from transformer.errors import QueryError, shown
from transformer.i18n import say
from transformer.model.anatomy import Kind
from transformer.text.tokenizer import SPACE_MARK

if TYPE_CHECKING:
    import duckdb

Select = tuple[str, dict[str, Any]]
Head = tuple[Kind, int, int]  # kind of attention, layer and head, from 1
OfLine = Literal["loss", "log_prob", "worst_rank", "n_source", "n_target"]
LINE_NAMES: Final[tuple[OfLine, ...]] = get_args(OfLine)
Side = Literal["source", "target", "output"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
PLACE: Final = "kind, layer, head, peak_query, peak_key, peak_step, peak_query_piece, peak_key_piece, peak"
_OF_HEAD: Final = "FROM read_parquet($heads) WHERE kind = $kind AND layer = $layer AND head = $head"
NEEDS_DUCKDB: Final = say(
    "To ask about single lines, this page needs DuckDB, which is not installed. Install it with "
    "pip install 'glassformer[corpus]' and start the app again."
)


def check_name(found: str, names: Collection[str]) -> None:
    """A `QueryError` where a name, which is written into a query, is not one of these."""
    if found not in names:
        raise QueryError(
            "{name} is not a measure of a corpus run; there are {names}.", name=shown(found), names=", ".join(names)
        )


@dataclass(frozen=True)
class Condition:
    """Base of all conditions."""

    @property
    def order(self) -> str:
        """How its numbers are sorted, what fits best first: ASC, DESC, or empty if there are none."""
        return ""

    def check(self, run: Run) -> None:
        """A `QueryError` where the run cannot answer."""

    def select(self) -> Select:
        """The query, with columns `line` and `value`, and what is bound in it."""
        raise NotImplementedError


@dataclass(frozen=True)
class OfHead(Condition):
    """Base of the conditions that name a head; their queries also select where the largest weight is."""

    kind: Kind
    layer: int  # from 1
    head: int  # from 1

    @property
    def order(self) -> str:  # noqa: D102
        return "DESC"

    def bound(self) -> dict[str, Any]:
        """What is bound in the query of its rows."""
        return {"kind": self.kind, "layer": self.layer, "head": self.head}


@dataclass(frozen=True)
class Asked(OfHead):
    """A measure of a head lies between two values, both included; None: unbounded."""

    measure: Name
    at_least: float | None = None
    at_most: float | None = None
    most_first: bool | None = None  # None: as the limits suggest

    @property
    def order(self) -> str:  # noqa: D102
        first = self.at_least is not None or self.at_most is None if self.most_first is None else self.most_first
        return "DESC" if first else "ASC"

    def check(self, run: Run) -> None:  # noqa: D102
        check_name(self.measure, NAMES)
        if self.measure == "effect" and not run.about.options.effect:
            raise QueryError("This run did not measure effects. Run the corpus command again with --effect.")

    def select(self) -> Select:  # noqa: D102
        query = f'SELECT line, "{self.measure}" AS value, {PLACE} {_OF_HEAD} AND isfinite(value){{}}'
        limits, bound = _limits("value", self.at_least, self.at_most)
        return query.format(limits), self.bound() | bound


@dataclass(frozen=True)
class LooksAt(OfHead):
    """A head's largest weight is at least so large, and on a piece: a certain one, or any punctuation."""

    at_least: float
    piece: str | None = None  # with or without the sign for a space; None: any punctuation

    def select(self) -> Select:  # noqa: D102
        bare = f"replace(peak_key_piece, '{SPACE_MARK}', '')"
        fits = f"{bare} = $piece"
        if self.piece is None:  # a pattern is slow, so each piece is looked at once
            different = f"SELECT DISTINCT peak_key_piece {_OF_HEAD}"
            fits = f"peak_key_piece IN (FROM ({different}) WHERE regexp_full_match({bare}, '[\\p{{P}}\\p{{S}}]+'))"
        limits, bound = _limits("peak", self.at_least, None)
        bound |= self.bound()
        if self.piece is not None:
            bound["piece"] = self.piece.replace(SPACE_MARK, "")
        return f"SELECT line, peak AS value, {PLACE} {_OF_HEAD}{limits} AND {fits}", bound


@dataclass(frozen=True)
class OfSentence(Condition):
    """A number of a line lies between two values, both included; None: unbounded."""

    measure: OfLine
    at_least: float | None = None
    at_most: float | None = None

    @property
    def order(self) -> str:  # noqa: D102
        return "DESC" if self.at_least is not None or self.at_most is None else "ASC"

    def check(self, run: Run) -> None:  # noqa: D102
        check_name(self.measure, LINE_NAMES)

    def select(self) -> Select:  # noqa: D102
        limits, bound = _limits("value", self.at_least, self.at_most)
        query = f'SELECT line, "{self.measure}"::FLOAT AS value FROM read_parquet($sentences)'
        return f"{query} WHERE value IS NOT NULL{limits}", bound


@dataclass(frozen=True)
class Contains(Condition):
    """A text of a line contains another, upper or lower case alike."""

    side: Side
    text: str

    def check(self, run: Run) -> None:  # noqa: D102
        check_name(self.side, SIDES)

    def select(self) -> Select:  # noqa: D102
        query = "SELECT line, NULL AS value FROM read_parquet($sentences) WHERE contains(lower({}), lower($text))"
        return query.format(self.side), {"text": self.text}


@dataclass(frozen=True)
class Disagrees(OfHead):
    """How differently a head's attention and its effect rank, among all lines that have both.

    A rank is the share of lines below, 0 to 1; the number is the difference of the two ranks, in either direction.
    """

    attention: Name = "norm_share"  # of `tables.ATTENDS`; a low entropy ranks high
    attends_more: bool = True
    at_least: float = 0.5

    def check(self, run: Run) -> None:  # noqa: D102
        check_name(self.attention, ATTENDS)
        Asked(self.kind, self.layer, self.head, "effect").check(run)

    def select(self) -> Select:  # noqa: D102
        sign = "" if ATTENDS[self.attention] else "-"
        attention = f'percent_rank() OVER (ORDER BY {sign}"{self.attention}")'
        effect = "percent_rank() OVER (ORDER BY effect)"
        more, less = (attention, effect) if self.attends_more else (effect, attention)
        ranked = f'SELECT line, {more} - {less} AS value, {PLACE} {_OF_HEAD} AND isfinite("{self.attention}")'
        query = f"SELECT * FROM ({ranked} AND isfinite(effect)) WHERE value >= $least"
        return query, self.bound() | {"least": self.at_least}


def _limits(value: str, least: float | None, most: float | None) -> Select:
    """Conditions for a number; a limit is rounded like the numbers, so 0.7 is at least 0.7."""
    limits = {">= $least::FLOAT": least, "<= $most::FLOAT": most}
    text = "".join(f" AND {value} {limit}" for limit, number in limits.items() if number is not None)
    return text, {name: number for name, number in (("least", least), ("most", most)) if number is not None}


# ------------------------------------------------------------------------------------------------ what is found

_ALL: Final = "SELECT line FROM read_parquet($sentences)"
_TEXTS: Final = "line, source, target, output, loss, worst_rank, worst_step, exact"
SECONDS: Final = 20.0  # of one query
_ASKED: Final[tuple[Table, ...]] = ("sentences", "heads")
_OFF: Final = (
    "autoinstall_known_extensions",
    "autoload_known_extensions",
    "allow_community_extensions",
    "allow_persistent_secrets",
    "python_enable_replacements",
)
_LIMITS: Final[dict[str, Any]] = {"memory_limit": "400MB", "threads": 2, "temp_directory": ""}


@dataclass(frozen=True)
class PeakPosition:
    """The largest weight of a head's map of a line."""

    kind: Kind
    layer: int  # from 1
    head: int  # from 1
    query: int | None  # the row, from 0; None where nothing was measured
    key: int | None
    step: int | None  # the step of that row, from 0; None for the encoder's
    query_piece: str | None
    key_piece: str | None
    weight: float | None


@dataclass(frozen=True)
class Hit:
    """A line that was found."""

    line: int  # from 1, its number in the file
    source: str
    target: str | None = None
    output: str | None = None
    loss: float | None = None
    worst_rank: int | None = None
    worst_step: int | None = None
    exact: bool | None = None
    values: tuple[float | None, ...] = ()  # what each condition looked at; None for those without a number
    place: PeakPosition | None = None  # of the first condition that names a head


@dataclass(frozen=True)
class SearchResult:
    """A page of the lines that fit."""

    total: int  # all lines that fit
    hits: tuple[Hit, ...]


@dataclass(frozen=True)
class HeadSummary:
    """What one head did with a line."""

    values: Mapping[Name, float | None]
    place: PeakPosition


@dataclass(frozen=True)
class Whole:
    """All that is kept of a line."""

    hit: Hit
    sentence: Mapping[str, Any]  # all columns of `sentences`
    heads: tuple[HeadSummary, ...]


# ---------------------------------------------------------------- questions


def extremes(
    run: Run, kind: Kind, layer: int, head: int, measure: Name, *, most: bool = True, n: int = 20
) -> list[Hit]:
    """The lines on which a head has most of a measure (or least), in order, then by number; errors as of `search`."""
    return list(search(run, [Asked(kind, layer, head, measure, most_first=most)], n=n).hits)


def search(run: Run, conditions: Sequence[Condition], *, n: int = 50, offset: int = 0) -> SearchResult:
    """The lines that fit all conditions: how many, and `n` of them after `offset`.

    The first condition's best come first, then by number. A `QueryError` where the run did not measure it, DuckDB is
    not installed, or it takes too long; a `DataError` where a file is unusable.
    """
    for condition in conditions:
        condition.check(run)
    with_, bound = _joined(conditions)
    head = next((one for one in conditions if isinstance(one, OfHead)), None)
    columns = ["line", "count(*) OVER ()", *(f"c{i}.value" for i in range(len(conditions)))]
    if head is not None:
        columns += [f"c{conditions.index(head)}.{name}" for name in PLACE.split(", ")]
    order = f"c0.value {conditions[0].order}, line" if conditions and conditions[0].order else "line"
    query = f"{with_[0]} SELECT {', '.join(columns)} {with_[1]} ORDER BY {order} LIMIT $n OFFSET $offset"
    rows = fetch(run, query, bound | {"n": n, "offset": offset})
    if not rows:
        return SearchResult(fetch(run, f"{with_[0]} SELECT count(*) {with_[1]}", bound)[0][0] if offset else 0, ())
    values = {row[0]: row[2 : 2 + len(conditions)] for row in rows}
    places = {row[0]: PeakPosition(*row[2 + len(conditions) :]) for row in rows} if head else {}
    return SearchResult(rows[0][1], tuple(_hits(run, values, places)))


def _joined(conditions: Sequence[Condition]) -> tuple[tuple[str, str], dict[str, Any]]:
    """The conditions' queries, c0, c1, ..., and where all of them meet; what is bound in them."""
    selects = [condition.select() for condition in conditions]
    bound = {f"c{i}_{name}": value for i, (_, values) in enumerate(selects) for name, value in values.items()}
    queries = [_renamed(query, i) for i, (query, _) in enumerate(selects)] or [_ALL]
    names = ", ".join(f"c{i} AS ({query})" for i, query in enumerate(queries))
    return (f"WITH {names}", "FROM c0" + "".join(f" JOIN c{i} USING (line)" for i in range(1, len(queries)))), bound


def _renamed(select: str, place: int) -> str:
    """A condition's query whose bound values have names of their own; those of files are the same for all."""
    return re.sub(r"\$(\w+)", lambda found: found[0] if found[1] in TABLES else f"$c{place}_{found[1]}", select)


def line(run: Run, number: int) -> Whole | None:
    """All that is kept of a line (from 1); None where the run does not have it. Errors are those of `search`."""
    shard = run.shard_of(number)
    if shard is None:
        return None

    def rows(table: Table, columns: str) -> list[tuple[Any, ...]]:
        query = f"SELECT {columns} FROM read_parquet($files) WHERE line = $line"
        return fetch(run, query, {"files": [path_of(run, table, shard)], "line": number})

    names = SENTENCES.names
    found = rows("sentences", ", ".join(names))
    if not found:
        return None
    measures = ", ".join(f'"{name}"' for name in NAMES)
    of_heads = rows("heads", f"{PLACE}, {measures}")
    heads = [HeadSummary(dict(zip(NAMES, row[9:], strict=True)), PeakPosition(*row[:9])) for row in of_heads]
    sentence = dict(zip(names, found[0], strict=True))
    hit = Hit(*[sentence[name] for name in _TEXTS.split(", ")])
    return Whole(hit, sentence, tuple(heads))


def _hits(
    run: Run, values: Mapping[int, tuple[float | None, ...]], places: Mapping[int, PeakPosition]
) -> Iterator[Hit]:
    """Lines with their texts, in the order of `values`; only files of their shards are opened."""
    shards = sorted({shard for number in values if (shard := run.shard_of(number)) is not None})
    files = [path_of(run, "sentences", shard) for shard in shards]
    query = f"SELECT {_TEXTS} FROM read_parquet($files) WHERE line IN (SELECT unnest($lines))"
    texts = {row[0]: row for row in fetch(run, query, {"files": files, "lines": list(values)})}
    if lacking := values.keys() - texts.keys():
        raise damaged(run, kind=f"line {min(lacking)}")
    for number, found in values.items():
        yield replace(Hit(*texts[number]), values=found, place=places.get(number))


# ---------------------------------------------------------------- DuckDB


def is_installed() -> bool:
    """Whether there is DuckDB."""
    return find_spec("duckdb") is not None


def fetch(run: Run, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows that a query finds; its errors are those of `connected`."""
    return fetch_of({"": run}, query, values)


def fetch_of(runs: Mapping[str, Run], query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The same of several runs, whose tables have names in it that begin differently."""
    tables = {f"{begin}{table}": (run, table) for begin, run in runs.items() for table in _ASKED}
    files = {name: paths(*whose) for name, whose in tables.items() if f"${name}" in query}
    with connected(*runs.values()) as connection:
        return connection.execute(query, {**values, **files}).fetchall()


def paths(run: Run, table: Table) -> list[str]:
    """All files of a table, as `read_parquet` wants them."""
    return [path_of(run, table, shard) for shard in run.done]


def path_of(run: Run, table: Table, shard: int) -> str:
    """A file of a shard, as `read_parquet` wants it; a file that is there is meant, even if its name has a `*`."""
    return str(run.folder / file_name(table, shard))


@contextmanager
def connected(*runs: Run) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for one question about runs, stopped after `SECONDS`.

    A `QueryError` where DuckDB is not installed, or time or memory runs out; a `DataError` where a file is unusable.
    """
    database = _database(runs)
    import duckdb

    with database.cursor() as opened:
        timer = threading.Timer(SECONDS, opened.interrupt)
        timer.start()
        try:
            yield opened
        except duckdb.InterruptException:
            raise QueryError("This search took longer than {n:.0f} s. Narrow the search.", n=SECONDS) from None
        except duckdb.OutOfMemoryException:
            raise QueryError("This search needs too much memory. Narrow the search.") from None
        except duckdb.Error as error:
            raise damaged(*runs, kind=type(error).__name__) from None
        finally:
            timer.cancel()


@lru_cache(maxsize=4)
def _database(runs: tuple[Run, ...]) -> duckdb.DuckDBPyConnection:
    """DuckDB in memory, which may read the files of runs and do nothing else outside."""
    if not is_installed():
        raise QueryError(NEEDS_DUCKDB)
    import duckdb

    allowed = [str(path) for run in runs for table in _ASKED for path in check(run, table)]
    database = duckdb.connect(":memory:", config=_LIMITS | dict.fromkeys(_OFF, False))
    database.execute("SET GLOBAL parquet_metadata_cache = true")
    database.execute("SET allowed_paths = $paths", {"paths": allowed})
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database
