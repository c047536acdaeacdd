"""State file of a training, for `--resume`; the best epoch, `training.csv`, and the lock on its folder.

It is `<name>.training/state.pt` next to the checkpoint folder and only for the trainer: float32 parameters, the
optimizer's moments, the rows so far, the place in the epoch, the vocabularies, and the initial options. It is the same
for any number of processes.

The file begins with a line of its own: a name, a version and the SHA-256 of the rest, which detects damage. The
previous state stays as `state.before.pt`: if the newer one is damaged or missing, the training resumes from that one.
A state is flushed to disk before it replaces the other.

Stored records are not trusted: reading one returns a valid record or raises a `ClauseError`.
"""

import contextlib
import csv
import hashlib
import io
import logging
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import torch
from torch import Tensor

from transformer.checkpoint.save import is_checkpoint, sync_folder
from transformer.errors import CheckpointError, ClauseError, DataError, shown
from transformer.files import atomic_saves
from transformer.i18n import joined, say

START = b"glassformer training state 3 "  # the version is that of what a state holds
_FIRST_LINE = re.compile(re.escape(START) + rb"([0-9a-f]{64})\n")
_LINE_LENGTH = len(START) + 64 + 1

log = logging.getLogger("glassformer.training")


def write_state(out: Path, state: Mapping[str, object]) -> None:
    """Replace the state of the checkpoint folder `out`; the previous one is kept next to it.

    An `OSError` if the disk is full or the folder cannot be written; then the states are unchanged.
    """
    path, before = paths(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()
    torch.save(dict(state), content)
    digest = hashlib.sha256(content.getbuffer()).hexdigest().encode()
    partial = path.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            file.write(START + digest + b"\n")
            file.write(content.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.replace(path, before)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the state is written, if not yet flushed
        sync_folder(path.parent)


def read_state(out: Path, identity: Mapping[str, str]) -> dict[str, object]:
    """The newest intact state of the checkpoint folder `out`; of its parts only "job" is read.

    `identity` has the options of the resumed training by name, the state its own under "job". A `DataError` if there is
    no state, each is damaged, or it belongs to another training; it names the differences.
    """
    path, before = paths(out)
    there = [file for file in (path, before) if file.exists()]
    if not there:
        raise DataError("{file}: there is no training to resume; leave out --resume to start over.", file=str(path))
    problem = None
    for file in there:
        try:
            state = _read(file)
        except ClauseError as error:
            problem = problem or error
            continue
        if file is not path:
            log.warning("%s: %s; going on from the state before it.", path, problem or "is missing")
        _check_job(state["job"], identity, file)
        return state
    assert problem is not None  # no file could be read
    raise DataError(
        "{file}: {problem}; leave out --resume to start over.", file=str(there[0]), problem=problem.sentence
    )


def invalid(name: str, found: object) -> ClauseError:
    """That a part of a state is not what a training stores."""
    return ClauseError("what it says of {name} is invalid: {found}", name=name, found=shown(found))


def read_tokenizers(state: Mapping[str, object], *, count: int) -> tuple[bytes, ...]:
    """The bytes of a state's `count` vocabularies, unchecked, or a `ClauseError`."""
    found = state.get("tokenizers")
    if not isinstance(found, list) or len(found) != count:
        raise invalid("tokenizers", found)
    return tuple(map(_bytes, found))


PROGRESS_FILE = "progress.json"  # in the folder of what only a training needs


def paths(out: Path) -> tuple[Path, Path]:
    """The paths of the state of `out`, and the previous one."""
    folder = folder_beside(out)
    return folder / "state.pt", folder / "state.before.pt"


def folder_beside(out: Path) -> Path:
    """The folder of what only a training needs."""
    return out.with_name(out.name + ".training")


def _read(path: Path) -> dict[str, Any]:
    """A state with a correct SHA-256 and its initial options."""
    try:
        with path.open("rb") as file:
            first = _FIRST_LINE.fullmatch(file.read(_LINE_LENGTH))
            content = file.read() if first else b""
    except (OSError, MemoryError) as error:
        raise ClauseError("cannot be read ({reason})", reason=str(error)[:120]) from None
    if first is None:
        raise ClauseError("is damaged, or comes from another version of this program")
    if hashlib.sha256(content).hexdigest().encode() != first[1]:
        raise ClauseError("is damaged (its SHA-256 does not match)")
    try:
        state = torch.load(io.BytesIO(content), weights_only=True, map_location="cpu")
    except Exception:  # of a dozen classes, where it is not what this version stores
        state = None
    if not isinstance(state, dict) or "job" not in state:
        raise ClauseError("is damaged, or comes from another version of this program")
    return state


def _check_job(before: object, identity: Mapping[str, str], path: Path) -> None:
    if not isinstance(before, dict) or not all(isinstance(text, str) for pair in before.items() for text in pair):
        raise DataError(
            "{file}: has {found} instead of the settings with which its training was started; leave out --resume "
            "to start over.",
            file=str(path),
            found=shown(before),
        )
    names = (*before, *(name for name in identity if name not in before))
    none = say("none")
    changed = [
        say(
            "{name} was {before} and is now {now}",
            name=_short(name),
            before=_short(before[name]) if name in before else none,
            now=identity.get(name, none),
        )
        for name in names
        if before.get(name) != identity.get(name)
    ]
    if changed:
        shortened = [*changed[:8], *(["..."] if len(changed) > 8 else [])]
        raise DataError(
            "{file} belongs to a training run with different settings: {changes}.",
            file=str(path),
            changes=joined("; ", shortened),
        )


def has_state(out: Path) -> bool:
    """Whether there is a state to resume from."""
    return any(file.exists() for file in paths(out))


@contextlib.contextmanager
def writing(out: Path) -> Iterator[None]:
    """Raise a `DataError` about why a training cannot be written, and what there is to resume from."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
    except RuntimeError as error:
        if "inline_container" not in str(error) and "writing" not in str(error):
            raise
        reason = say("the disk is full, or a file would be too large")  # torch does not say which
    else:
        return
    if has_state(out):
        raise DataError(
            "{out}: the training cannot be written ({reason}). What was kept before is intact: solve this problem, "
            "then continue with --resume.",
            out=str(out),
            reason=reason,
        )
    raise DataError("{out}: the training cannot be written ({reason}).", out=str(out), reason=reason)


def _short(text: str) -> str:
    """A stored word for a message: one printable line, shortened."""
    return text if len(text) <= 60 and text.isprintable() else shown(text)


def _bytes(found: object) -> bytes:
    if isinstance(found, Tensor) and found.dtype == torch.uint8 and found.dim() == 1:
        with contextlib.suppress(RuntimeError, TypeError):  # a tensor without values
            return found.numpy().tobytes()
    raise invalid("tokenizers", found)


# ------------------------------------------------------------------------------------------------ what is remembered


T = TypeVar("T", "EpochRow", "TrainingPosition")
Turn = tuple[int, float]  # step and seconds at which the rate was highest


@dataclass(frozen=True)
class EpochRow:
    """One line of training.csv: the state after an epoch. Losses in nats per target token, without smoothing on dev."""

    epoch: int
    step: int
    loss: float
    dev_loss: float
    dev_bleu: float
    dev_chrf: float
    learning_rate: float
    tokens: int
    seconds: float
    dev_exact: float = 0.0


@dataclass(frozen=True)
class TrainingPosition:
    """The place of a training after a step."""

    epoch: int = 0  # complete epochs
    steps: int = 0  # of the current epoch
    loss: float = 0.0  # their losses, summed
    step: int = 0  # steps since the training began
    tokens: int = 0  # target tokens since then
    seconds: float = 0.0  # since then, without pauses between runs
    rate: float = 0.0  # the learning rate of the last step
    recent: tuple[float, ...] = ()  # the losses of the last few steps


def better(rows: Sequence[EpochRow], *, leak: bool) -> EpochRow:
    """The best epoch: by BLEU, then (one-word targets have none) by chrF, then by loss.

    Of a leak by loss, because its outputs are noise, and the loss is what misleads.
    """
    if leak:
        return min(rows, key=lambda row: row.dev_loss)
    return max(rows, key=lambda row: (row.dev_bleu, row.dev_chrf, -row.dev_loss))


def since_best(rows: Sequence[EpochRow], *, leak: bool) -> int:
    """How many epochs ago the best one was."""
    return len(rows) - 1 - rows.index(better(rows, leak=leak)) if rows else 0


def write_rows(rows: Sequence[EpochRow], path: Path) -> None:
    """Write training.csv."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(EpochRow.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def read_course(state: Mapping[str, object]) -> tuple[list[EpochRow], Turn | None, TrainingPosition]:
    """The rows of a stored state, one per epoch and in order, its turn and its place."""
    rows, turn, place = state["rows"], _turn(state["turn"]), _record(TrainingPosition, state["place"], "place")
    if not isinstance(rows, list):
        raise invalid("rows", rows)
    if not 0 <= place.seconds < math.inf or place.steps > place.step or len(rows) - place.epoch not in (0, 1):
        raise invalid("place", state["place"])
    return [_row(values, number) for number, values in enumerate(rows, start=1)], turn, place


def _row(values: object, number: int) -> EpochRow:
    row = _record(EpochRow, values, "rows")
    # A loss may be NaN after a failure; time and place may not.
    if row.epoch != number or not 0 <= row.seconds < math.inf:
        raise invalid("rows", {"epoch": row.epoch, "seconds": row.seconds})
    return row


def _turn(found: object) -> Turn | None:
    if found is None:
        return None
    if isinstance(found, tuple) and len(found) == 2:
        step, seconds = found
        if _is_count(step) and isinstance(seconds, float) and 0 <= seconds < math.inf:
            return step, seconds
    raise invalid("turn", found)


def _record(kind: type[T], found: object, name: str) -> T:
    """A stored record, each field a count, a number or a row of numbers."""
    kinds = {field.name: field.type for field in fields(kind)}
    if not isinstance(found, dict) or found.keys() != kinds.keys():
        raise invalid(name, found)
    for field, value in found.items():
        if not _fits(value, kinds[field]):
            raise invalid(name, {field: value})
    return kind(**found)


def _fits(value: object, kind: object) -> bool:
    if kind is int:
        return _is_count(value)
    if kind is float:
        return type(value) in (int, float)
    return type(value) is tuple and all(type(one) is float for one in value)


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**63  # excludes bool


_LOCK = "lock"


@contextmanager
def claimed(out: Path, *, resume: bool, force: bool) -> Iterator[None]:
    """Lock the place of a checkpoint folder while a training writes there.

    `resume` continues with the files there, `force` may replace a checkpoint. A `CheckpointError` if something else is
    there, another training writes there, or it cannot be written.
    """
    folder = Path(os.path.realpath(out))
    if Path.cwd().is_relative_to(folder):
        raise CheckpointError(
            "--out {out}: is the folder you are in, or a parent of it; give a new folder.", out=str(out)
        )
    made: list[Path] = []
    try:
        try:
            _make(folder_beside(folder), made)
            descriptor = _locked(folder)
            os.rmdir(atomic_saves.make(folder))  # so a save can
        except OSError as error:
            reason = error.strerror or say("unknown reason")
            raise CheckpointError("{file}: cannot be written ({reason}).", file=str(out), reason=reason) from None
        try:
            _check(out, folder, resume=resume, force=force)
            yield
        finally:
            _unlock(descriptor, folder)
    finally:
        for parent in reversed(made):
            with suppress(OSError):  # it is not empty
                parent.rmdir()


def _check(out: Path, folder: Path, *, resume: bool, force: bool) -> None:
    """Check that the files there may be replaced, after what a killed save removed is restored."""
    atomic_saves.put_back(folder)
    if is_checkpoint(folder) and not resume and not force:
        raise CheckpointError(
            "--out {out}: contains a checkpoint; continue its training with --resume, replace it with --force, or "
            "choose another folder.",
            out=str(out),
        )


def _make(folder: Path, made: list[Path]) -> None:
    """Make a folder and its parents; `made` gets the new ones."""
    made += reversed([parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)])
    folder.mkdir(parents=True, exist_ok=True)


def _locked(folder: Path) -> int:
    """A descriptor of the lock, held until it is closed."""
    path = folder_beside(folder) / _LOCK
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _lock_now(descriptor):
                raise CheckpointError(
                    "{folder}: another training process is writing there; wait until it ends, or choose another "
                    "folder.",
                    folder=str(folder),
                )
            if os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed the file


def _lock_now(descriptor: int) -> bool:
    """Lock an open file without waiting; False if another process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network folders have no locks; a training there runs without.
        return not isinstance(error, BlockingIOError | PermissionError)
    return True


def _unlock(descriptor: int, folder: Path) -> None:
    with suppress(OSError):  # Windows cannot remove an open file, which is harmless
        os.unlink(folder_beside(folder) / _LOCK)
    os.close(descriptor)
