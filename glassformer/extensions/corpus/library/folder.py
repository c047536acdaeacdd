"""Corpus runs on disk, read complete or partial: about.json, checksums, checked Parquet files, summaries.

A run is a folder `OUT/<key>/`. `about.json` says what was measured. Each finished shard has `sentences-000000.parquet`,
`heads-000000.parquet`, perhaps `vectors-000000.parquet`, and, written last, `rollup-000000.parquet`; `sums-000000.json`
has the SHA-256 of each (runs of earlier versions have none).

Files are not trusted: they are compared with these sums when they are read, only regular files inside the folder are
opened, JSON and Parquet footers are read within limits, and columns must be those of `tables`. Unusable files raise an
error. It does not know DuckDB (`queries`) or how runs are made.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from glassformer.extensions.corpus.library import tables
from glassformer.extensions.corpus.library.tables import CorpusOptions, Table
from transformer.errors import CheckpointError, ClauseError, DataError, shown, within
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, say

ABOUT: Final = "about.json"
MOST_RUNS = 1_000  # of a folder
MOST_LINES = 10**9
MOST_ROWS: Final[dict[Table, int]] = {"sentences": 1, "heads": 20_000, "vectors": 10**7, "rollup": 10**6}  # per line
MOST_ABOUT, MOST_FOOTER = 100_000, 50_000_000  # bytes
MOST_PACKED = 1_000  # bytes that one byte of a file may become
FORMAT: Final = 1  # of about.json
NEEDED: Final[tuple[Table, ...]] = ("sentences", "heads", "rollup")  # files of a shard that is there
_REMEASURE: Final = say("Run the same command again: it measures what is damaged anew.")
T = TypeVar("T")
_KEY = re.compile(r"[0-9a-f]{16}")
_FILE = re.compile(r"(sentences|heads|vectors|rollup)-(\d{6,9})\.parquet")


@dataclass(frozen=True)
class About:
    """What `about.json` says of a run."""

    checkpoint: str  # name of its folder
    content_hash: str  # of what it consists of
    files: tuple[str, ...]  # names of the files of lines
    sha256: str  # of what is in them
    lines: int  # that are measured when it is complete; those without text are none
    shards: int  # that have lines
    code: str  # hash of the code that measures
    options: CorpusOptions
    complete: bool


@dataclass(frozen=True)
class Run:
    """A run in its folder, as it was when it was opened."""

    folder: Path  # real path
    about: About
    done: tuple[int, ...]  # shards that are there, from 0; a shard without text is none
    with_vectors: tuple[int, ...]  # those of them that have a table of vectors
    lines_done: int  # lines of the shards that are done, `about.lines` if all are

    @property
    def key(self) -> str:
        """The name of its folder, 16 hexadecimal digits."""
        return self.folder.name

    def names(self, table: Table) -> list[str]:
        """Names of the files that a table consists of, in the order of lines."""
        return [file_name(table, shard) for shard in (self.with_vectors if table == "vectors" else self.done)]

    def shard_of(self, line: int) -> int | None:
        """The shard that has a line (from 1); None if it is not there."""
        shard = (line - 1) // self.about.options.shard
        return shard if shard in self.done else None


def file_name(table: Table, shard: int) -> str:
    """The name of a shard's table (the shard from 0)."""
    return f"{table}-{shard:06d}.parquet"


def sums_name(shard: int) -> str:
    """The name of the checksums of a shard's files."""
    return f"sums-{shard:06d}.json"


def damaged_files(folder: Path, shard: int, *, only: str = "") -> list[str]:
    """Names of a shard's files, or of `only` one, with wrong checksums; the checksums' own file if it is unusable.

    A file is read again only when it changes.
    """
    try:
        sums = FolderFiles(folder).json(sums_name(shard), limit=MOST_ABOUT)
        names = [only] if only else {*sums, *(file_name(table, shard) for table in NEEDED)}
        return sorted(name for name in names if _sha256(folder / name) != sums.get(name))
    except (CheckpointError, AttributeError, TypeError):
        return [sums_name(shard)]


def _sha256(path: Path) -> str:
    try:
        found = path.stat()
        return _digest(path, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    except OSError:
        return ""


@lru_cache(maxsize=10_000)
def _digest(path: Path, version: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def runs(folders: Iterable[Path]) -> tuple[list[Run], list[Sentence]]:
    """All runs in folders, by name, and the problems of unusable ones; of runs with one key the first counts."""
    found: dict[str, Run] = {}
    problems: list[Sentence] = []
    for folder in folders:
        for name in _keys(folder):
            if name in found:
                continue
            try:
                found[name] = open_run(folder / name)
            except DataError as error:
                problems.append(error.sentence)
    return sorted(found.values(), key=lambda run: (run.about.checkpoint, run.about.files, run.key)), problems


def _keys(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if _KEY.fullmatch(entry.name) and entry.is_dir())
    except (OSError, ValueError):
        return []
    return [name for name in names if os.path.lexists(folder / name / ABOUT)][:MOST_RUNS]


def open_run(folder: Path) -> Run:
    """The run in a folder; a `DataError` where `about.json` is unusable or a file of a shard is missing.

    Of Parquet files it reads only names, and row counts if shards are missing; `check` reads their footers.
    """
    try:
        files = FolderFiles(folder, called=folder.name)
        about = _about(files.label(ABOUT), files.json(ABOUT, limit=MOST_ABOUT))
        there = _shards(folder)
    except CheckpointError as error:
        raise DataError(error.sentence) from None
    done = sorted(there["rollup"])
    whole = set.intersection(*(there[table] for table in NEEDED))
    if len(whole) < len(done) or len(done) > about.shards or (about.complete and len(done) < about.shards):
        raise DataError(
            "{run}: files are missing; {n:,} of {all:,} shards are complete. Run the same command again: it measures "
            "what is missing.",
            run=shown(folder.name),
            all=about.shards,
            n=len(whole),
        )
    run = Run(folder.resolve(), about, tuple(done), tuple(sorted(there["vectors"].intersection(done))), about.lines)
    if len(done) == about.shards:
        return run
    return replace(run, lines_done=sum(footer.num_rows for footer in _footers(run, "sentences")))


def _shards(folder: Path) -> dict[Table, set[int]]:
    """The shards of which there is a file, by its name."""
    there: dict[Table, set[int]] = {table: set() for table in tables.TABLES}
    for name in os.listdir(folder):
        match = _FILE.fullmatch(name)
        if match:
            there[match[1]].add(int(match[2]))  # type: ignore[index]
    return there


def _about(label: str, record: Any) -> About:
    """What `about.json` says; a `DataError` where a field is missing or not as it should be."""
    with within(label, DataError):
        found = _field(record, "format", int)
        if found != FORMAT:
            raise ClauseError("its format is {found}; this program reads {format}", found=found, format=FORMAT)
        options = _field(record, "options", dict)
        flags = {name: _field(options, name, bool) for name in ("decode", "effect")}
        return About(
            **{name: _field(record, name, str) for name in ("checkpoint", "content_hash", "sha256", "code")},
            files=tuple(_field({"files": name}, "files", str) for name in _field(record, "files", list)),
            lines=_field(record, "lines", int),
            shards=_field(record, "shards", int),
            options=CorpusOptions(
                **flags, vectors=_field(options, "vectors", int), shard=_field(options, "shard", int, least=1)
            ),
            complete=_field(record, "complete", bool),
        )


def _field(record: Any, name: str, kind: type[T], *, least: int = 0) -> T:
    """A field of a record, of a type; numbers are at least `least`."""
    found = record.get(name) if isinstance(record, dict) else record
    if type(found) is not kind or (isinstance(found, int) and not least <= found <= MOST_LINES):
        raise ClauseError("“{name}” cannot be {found}", name=name, found=shown(found))
    return found


# ---------------------------------------------------------------- Parquet files


@lru_cache(maxsize=8)
def summaries(run: Run) -> tables.Summaries:
    """What all lines of a run that are done add up to; a `DataError` where a file of roll-ups is unusable."""
    files = FolderFiles(run.folder, called=run.folder.name)

    def tables_of_shards() -> Iterator[pa.Table]:
        for name in run.names("rollup"):
            with _opened(files, name, run, "rollup") as parquet:
                found = parquet.read()
            yield found

    with within(run.key, DataError):
        return tables.merged(tables_of_shards())


def damaged(*runs: Run, kind: str) -> DataError:
    """What is to be raised where a file that was looked into is not what it was; `kind` says how that showed."""
    names = ", ".join(run.key for run in runs)
    return DataError(
        "{runs}: a file is damaged or was replaced ({kind}). {remedy}", runs=names, kind=kind, remedy=_REMEASURE
    )


def check(run: Run, table: Table) -> list[Path]:
    """The files of a table, after a check of each footer.

    A `DataError` where a file is missing, links out of the folder, is not Parquet, or has wrong columns or too many
    rows.
    """
    _footers(run, table)
    return [run.folder / name for name in run.names(table)]


def _footers(run: Run, table: Table) -> list[pq.FileMetaData]:
    files = FolderFiles(run.folder, called=run.folder.name)
    found = []
    for name in run.names(table):
        with _opened(files, name, run, table) as parquet:
            found.append(parquet.metadata)
    return found


@contextmanager
def _opened(files: FolderFiles, name: str, run: Run, table: Table) -> Iterator[pq.ParquetFile]:
    """A Parquet file whose footer fits; a `DataError` where it does not, or the file cannot be read."""
    label = files.label(name)
    try:
        with (
            files.open(name) as (file, size),
            pq.ParquetFile(
                file, thrift_string_size_limit=MOST_FOOTER, thrift_container_size_limit=MOST_FOOTER
            ) as parquet,
        ):
            problem = _problem(parquet, size, run.about.options.shard, table)
            if problem:
                raise DataError("{label}: {problem}.", label=label, problem=problem)
            shard = int(name.rpartition("-")[2].partition(".")[0])
            if files.has(sums_name(shard)) and damaged_files(run.folder, shard, only=name):
                raise DataError(
                    "{label}: its content is not what was written, by its checksum. {remedy}",
                    label=label,
                    remedy=_REMEASURE,
                )
            yield parquet
    except CheckpointError as error:
        raise DataError(error.sentence) from None
    except (pa.ArrowException, OSError) as error:  # an OSError is a page that cannot be unpacked
        reason = shown(str(error))
        raise DataError(
            "{label}: is not a complete Parquet file ({reason}). {remedy}",
            label=label,
            reason=reason,
            remedy=_REMEASURE,
        ) from None


def _problem(parquet: pq.ParquetFile, size: int, lines: int, table: Table) -> Sentence | None:
    """What is wrong in a footer of a file of so many bytes and at most so many lines."""
    columns = {field.name: field for field in parquet.schema_arrow}
    for field in tables.SCHEMAS[table]:
        if field.name not in columns or not field.equals(columns[field.name]):
            return say("its column {name} is missing or has the wrong type", name=field.name)
    groups = [parquet.metadata.row_group(i) for i in range(parquet.num_row_groups)]
    rows, unpacked = parquet.metadata.num_rows, sum(group.total_byte_size for group in groups)
    right = sum(group.num_rows for group in groups) == rows and 0 <= rows <= lines * MOST_ROWS[table]
    if not right or unpacked > size * MOST_PACKED:
        return say(
            "it claims {rows:,} rows and {unpacked:,} bytes unpacked, which is impossible", rows=rows, unpacked=unpacked
        )
    return None
