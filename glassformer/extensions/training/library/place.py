"""The place that a training writes to: looked at before the first step, and held until the last.

What stands there must be nothing, an empty folder or a checkpoint; a checkpoint is replaced only by its own training
(`--resume`) or on demand (`--force`). A lock in `<name>.training/` keeps a second training out. The system drops it
with the process, however that ends, so no lock is ever stale.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from glassformer.extensions.training.library.state import folder_beside
from transformer.checkpoint.save import is_checkpoint
from transformer.errors import CheckpointError
from transformer.files import hidden
from transformer.i18n import say

_LOCK = "lock"


@contextmanager
def claimed(out: Path, *, resume: bool, force: bool) -> Iterator[None]:
    """Hold the place of a checkpoint folder while a training writes there.

    With `resume` it goes on with what stands there, with `force` it may replace a checkpoint. A `CheckpointError`
    where something else stands there, another training writes there, or nobody can write there.
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
            os.rmdir(hidden.make(folder))  # so a save will be able to
        except OSError as error:
            reason = error.strerror or say("unknown reason")
            raise CheckpointError("--out {out}: cannot be written ({reason}).", out=str(out), reason=reason) from None
        try:
            _check(out, folder, resume=resume, force=force)
            yield
        finally:
            _unlock(descriptor, folder)
    finally:
        for parent in reversed(made):
            with suppress(OSError):  # something lies in it
                parent.rmdir()


def _check(out: Path, folder: Path, *, resume: bool, force: bool) -> None:
    """Whether what stands there may be replaced; what a killed save took away is put back first."""
    hidden.put_back(folder)
    if is_checkpoint(folder) and not resume and not force:
        raise CheckpointError(
            "--out {out}: contains a checkpoint; continue its training with --resume, replace it with --force, or "
            "choose another folder.",
            out=str(out),
        )


def _make(folder: Path, made: list[Path]) -> None:
    """Make a folder and those around it; `made` gets those that were not there."""
    made += reversed([parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)])
    folder.mkdir(parents=True, exist_ok=True)


def _locked(folder: Path) -> int:
    """A descriptor of the lock, which is held until it is closed."""
    path = _lock(folder)
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
        os.close(descriptor)  # whoever held it removed the file meanwhile


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
        # Some network folders have no locks at all; a training there goes without.
        return not isinstance(error, BlockingIOError | PermissionError)
    return True


def _unlock(descriptor: int, folder: Path) -> None:
    with suppress(OSError):  # Windows removes no open file; it stays and does no harm
        os.unlink(_lock(folder))
    os.close(descriptor)


def _lock(folder: Path) -> Path:
    return folder_beside(folder) / _LOCK
