"""DuckDB over the Parquet files of runs, and over nothing else.

It may open the files of the runs that it was made for, once `folder.check` has looked into them, and no other; it has
no extensions, little memory and few threads, writes nothing to disk, and is stopped when a query takes too long.
Values are bound (`$name`), also the files of a table: `read_parquet($heads)`.

DuckDB is an extra (`corpus`), imported when the first question is asked. Source: Raasveldt and Mühleisen (2019),
"DuckDB: an Embeddable Analytical Database"; https://duckdb.org/docs/stable/operations_manual/securing_duckdb/overview.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from glassformer.extensions.corpus.library.folder import Run, check, damaged, file_name
from glassformer.extensions.corpus.library.tables import Table
from transformer.errors import QueryError

if TYPE_CHECKING:
    import duckdb

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


def is_installed() -> bool:
    """Whether there is DuckDB."""
    return find_spec("duckdb") is not None


def rows(run: Run, query: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rows that a query finds; its errors are those of `cursor`."""
    with cursor(run) as connection:
        return connection.execute(query, bound(run, query, values)).fetchall()


def bound(run: Run, query: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a query, with the run's files of those tables that it names."""
    return {**values, **{table: paths(run, table) for table in _ASKED if f"${table}" in query}}


def paths(run: Run, table: Table) -> list[str]:
    """All files of a table, as `read_parquet` wants them."""
    return [path(run, table, shard) for shard in run.done]


def path(run: Run, table: Table, shard: int) -> str:
    """A file of a shard, as `read_parquet` wants it; a file that is there is meant, even if its name has a `*`."""
    return str(run.folder / file_name(table, shard))


@contextmanager
def cursor(*runs: Run) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection for one question about runs, stopped after `SECONDS`.

    A `QueryError` where DuckDB is not installed, or the question needs too much time or memory; a `DataError` where a
    file of a run is unusable.
    """
    database = _database(runs)
    import duckdb

    with database.cursor() as connection:
        timer = threading.Timer(SECONDS, connection.interrupt)
        timer.start()
        try:
            yield connection
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
        raise QueryError(
            "Looking at single lines needs DuckDB, which is not installed; install it with pip install "
            "'glassformer[corpus]'."
        )
    import duckdb

    allowed = [str(path) for run in runs for table in _ASKED for path in check(run, table)]
    database = duckdb.connect(":memory:", config=_LIMITS | dict.fromkeys(_OFF, False))
    database.execute("SET GLOBAL parquet_metadata_cache = true")
    database.execute("SET allowed_paths = $paths", {"paths": allowed})
    database.execute("SET enable_external_access = false")
    database.execute("SET lock_configuration = true")
    return database
