"""A corpus run as it is written: plan and missing shards, hash of the code, folder lock, worker's job, checksums.

    OUT/<key>/about.json                   what was measured, with what
    OUT/<key>/sentences-000000.parquet     the tables of shard 0 (see `tables`); also heads, rollup, perhaps vectors
    OUT/<key>/sums-000000.json             the SHA-256 of these files

The key is a hash of the checkpoint's content, the code that measures, the options and the file, so the files of a
folder belong together, and a killed run continues with missing or damaged shards. A file gets its name when it is
complete, the roll-up last. The same shard has the same bytes in any process at any time.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import torch

from glassformer.extensions.corpus.library import lines, measuring
from glassformer.extensions.corpus.library.folder import ABOUT, FORMAT, NEEDED, damaged_files, file_name, sums_name
from glassformer.extensions.corpus.library.lines import Corpus, Shard
from glassformer.extensions.corpus.library.tables import SCHEMAS, TABLES, CorpusOptions, Table, rolled_up
from transformer.checkpoint.load import Checkpoint, in_memory
from transformer.checkpoint.opening import load
from transformer.errors import CheckpointError, DataError
from transformer.files.atomic_saves import write_whole

_PART: Final = ".part"
_OURS: Final = "glassformer/extensions/corpus/"
_DECIDING: Final = (  # folders
    *(f"transformer/{name}" for name in ("model", "runs", "text", "checkpoint", "analysis")),
    f"{_OURS}library",
    "glassformer/extensions/what_if/interventions",
)
_ASKING: Final = frozenset(  # modules of this one that measure nothing
    f"{name}.py" for name in ("folder", "joint_space", "pool", "queries", "scores")
)

Files = Mapping[Table, bytes]


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # sacreBLEU is an extra
        return ""


@cache
def code_version() -> str:
    """A hash of the code that decides the numbers and the bytes: our sources, and the versions of the libraries."""
    root, digest = Path(__file__).parents[4], hashlib.sha256()
    for path in sorted(path for folder in _DECIDING for path in (root / folder).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name.removeprefix(f"{_OURS}library/") not in _ASKING:
            digest.update(f"{name}\n".encode() + path.read_bytes())
    libraries = [f"{name} {_version(name)}" for name in ("torch", "pyarrow", "numpy", "sacrebleu")]
    digest.update(" ".join([*libraries, platform.machine()]).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class CorpusJob:
    """What every process of a run needs to know, whatever engine started it."""

    checkpoint: Path  # what `load` opens
    content_hash: str  # of that checkpoint
    options: CorpusOptions
    code: str
    device: str = "cpu"  # where the model computes

    def files(self, shard: Shard) -> Files:
        """The files of a shard, as bytes; a `GlassformerError` where it cannot be measured here."""
        if self.code != code_version():
            raise DataError("the program was changed during the run, or is not the same on all machines; run it again.")
        found = measuring.measure(_opened(self), shard.lines, self.options, shard.gold)
        made = {"sentences": found.sentences, "heads": found.heads, "vectors": found.vectors}
        made["rollup"] = rolled_up(found.heads)
        of_a_head = {"heads": found.sentences["problem"].null_count}  # rows: the lines that were measured
        there = {name: made[name] for name in TABLES if made[name] is not None}
        return {name: _bytes(name, rows, max(of_a_head.get(name, len(rows)), 1)) for name, rows in there.items()}


def _opened(job: CorpusJob) -> Checkpoint:
    """The checkpoint, loaded once a process; on one thread, as numbers may depend on how many there are."""
    torch.set_num_threads(1)
    held = in_memory(job.content_hash)
    fits = held is not None and held.device.type == torch.device(job.device).type
    return held if held is not None and fits else _loaded(job.checkpoint, job.content_hash, job.device)


@cache
def _loaded(checkpoint: Path, content_hash: str, device: str) -> Checkpoint:
    found = load(checkpoint, device=device)
    if found.content_hash != content_hash:
        raise CheckpointError(
            "{name}: was changed during the run. The tables belong to the old files; run it again for the new ones.",
            name=found.name,
        )
    return found


@dataclass(frozen=True)
class Plan:
    """A run: what it measures, and where it stands."""

    folder: Path
    job: CorpusJob
    corpus: Corpus
    about: Mapping[str, Any]  # the content of about.json, but for whether it is complete
    digests: Mapping[int, bytes]  # of the shards that the file has
    counts: Mapping[int, int]  # their lines

    def done(self) -> set[int]:
        """The shards that are there, as they were written."""
        return {number for number in self._there() if not damaged_files(self.folder, number)}

    def damaged(self) -> list[str]:
        """The files that are there, and not as they were written; their shards are measured again."""
        return [name for number in sorted(self._there()) for name in damaged_files(self.folder, number)]

    def _there(self) -> set[int]:
        there = set(os.listdir(self.folder)) if self.folder.is_dir() else set()
        return {number for number in self.digests if all(file_name(table, number) in there for table in NEEDED)}

    def missing(self) -> Iterator[Shard]:
        """The shards that are not; a `DataError` where the file is not the one that was planned for."""
        done = self.done()
        for shard in lines.shards(self.corpus, self.job.options.shard):
            if shard.digest() != self.digests.get(shard.number):
                raise DataError("{file}: was changed during the run; run it again.", file=self.corpus.names[0])
            if shard.number not in done:
                yield shard

    def write(self, number: int, files: Files) -> None:
        """Write a shard's files, the roll-up last; an `OSError` where there is no room or no right to."""
        sums = {file_name(table, number): hashlib.sha256(content).hexdigest() for table, content in files.items()}
        _write(self.folder / sums_name(number), json.dumps(sums, indent=1).encode())
        for table in (name for name in TABLES if name in files):
            _write(self.folder / file_name(table, number), files[table])

    def close(self) -> None:
        """Say that all is there."""
        _write_about(self.folder, {**self.about, "complete": True})


def plan(
    checkpoint: Checkpoint, source: Path, corpus: Corpus, options: CorpusOptions, *, out: Path, most: int | None = None
) -> Plan:
    """Read the file through and name the run; writes nothing. `load` opened `source`; `most` limits the lines.

    A `DataError` where the file has no text.
    """
    digests, counts = {}, {}
    for shard in lines.shards(corpus, options.shard):
        digests[shard.number], counts[shard.number] = shard.digest(), len(shard.lines)
    if not digests:
        raise DataError("{file}: has no sentences. Write one per line.", file=corpus.names[0])
    job = CorpusJob(source, checkpoint.content_hash, options, code_version(), str(checkpoint.device))
    decides: dict[str, object] = {
        "content_hash": job.content_hash,
        "code": job.code,
        "options": asdict(options),
        "sha256": corpus.sha256,
        "max_lines": most,
    }
    if checkpoint.device.type != "cpu":  # whose numbers differ by rounding
        decides["device"] = checkpoint.device.type
    key = hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
    about = {
        "format": FORMAT,
        "checkpoint": checkpoint.name,
        "files": list(corpus.names),
        "lines": sum(counts.values()),
        "shards": len(digests),
        **decides,
    }
    return Plan(out / key, job, corpus, about, digests, counts)


@contextmanager
def claimed(plan: Plan) -> Iterator[None]:
    """Create and lock the folder, and remove half-written files; a `DataError` if it cannot be written or is locked."""
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
        if not (plan.folder / ABOUT).exists():
            _write_about(plan.folder, {**plan.about, "complete": False})
        with _alone(plan.folder):
            for path in plan.folder.glob(f".*{_PART}"):
                path.unlink()
            yield
    except OSError as error:
        reason, there = error.strerror or str(error), len(plan.done())
        raise DataError(
            "{folder}: cannot be written ({reason}). {there:,} of {total:,} shards are complete and stay; the same "
            "command continues from there.",
            folder=str(plan.folder),
            reason=reason,
            there=there,
            total=len(plan.digests),
        ) from None


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One run at a time; the system drops the lock with this process, even if its workers live a little longer."""
    if sys.platform == "win32":
        yield  # what two runs write is the same, so nothing is lost
        return
    import fcntl

    descriptor = os.open(folder / ABOUT, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # unlike flock, no child inherits it
        except (BlockingIOError, PermissionError):
            raise DataError("{folder}: another run is writing there; wait for its end.", folder=str(folder)) from None
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(descriptor)


def _write_about(folder: Path, about: Mapping[str, Any]) -> None:
    _write(folder / ABOUT, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    write_whole(path, content, path.with_name(f".{path.name}{_PART}"))


def _bytes(table: Table, rows: pa.Table, together: int) -> bytes:
    """A file in which so many rows lie together: what is asked of one head is read alone."""
    sink, schema = pa.BufferOutputStream(), SCHEMAS[table]
    few = [field.name for field in schema if not pa.types.is_floating(field.type)]  # numbers hardly repeat
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=few) as writer:
        for start in range(0, len(rows), together):
            writer.write_table(_compact(rows.slice(start, together)), row_group_size=together)
    return sink.getvalue().to_pybytes()


def _compact(rows: pa.Table) -> pa.Table:
    """The same rows; a dictionary holds only the words that occur in them, in the order in which they do."""
    columns = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_dictionary(field.type):
            found = column.cast(pa.string()).combine_chunks().dictionary_encode()
            indices = found.indices.cast(field.type.index_type)
            column = pa.DictionaryArray.from_arrays(indices, found.dictionary)
        columns.append(column)
    return pa.table(columns, schema=rows.schema)
