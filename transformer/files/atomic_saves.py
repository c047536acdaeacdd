"""Atomic saves: staging folders, folders exchanged in one call, files written whole, recovery after a crash.

    .NAME.xxxxxxxx.saving     the new files, complete or not; after the exchange, the old ones
    .NAME.xxxxxxxx.replaced   the old folder, where two folders cannot be exchanged in one call

A save that ends removes its own; the next save clears away those of one that was killed. If that happened while there
was no folder NAME, the `.replaced` one is the checkpoint: reading says so, the next save puts it back.

Only files that a checkpoint consists of are ever removed, by name. All other files go into the folder.

An exchange leaves no moment in which a name leads nowhere. Linux has `renameat2` with RENAME_EXCHANGE (man 2 rename),
macOS `renamex_np` with RENAME_SWAP. Python offers neither, so they are called through ctypes. Not every file system
can do it, and Windows cannot; callers need another way.
"""

import ctypes
import errno
import os
import re
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

Own = Callable[[Path], Collection[str]]
Version = tuple[int, ...]

_SAVING, _REPLACED = ".saving", ".replaced"
_HIDDEN = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}(?P<kind>\.saving|\.replaced)", re.DOTALL)


def make(folder: Path) -> Path:
    """A new, empty, hidden folder for the new files of `folder`."""
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=_SAVING, dir=folder.parent))


def aside(saving: Path) -> Path:
    """Where the old folder waits while the one that `make` made takes its place."""
    return saving.with_suffix(_REPLACED)


def replaced(folder: Path) -> Path | None:
    """The hidden folder with the files of a checkpoint that was being replaced, if the folder itself is missing."""
    if os.path.lexists(folder):
        return None
    return max(_of(folder, _REPLACED), key=lambda copy: copy.stat().st_mtime_ns, default=None)


def missing(root: Path) -> list[str]:
    """The names of the checkpoints in a folder of which only a hidden `.replaced` folder is there."""
    names = {name for name, kind, _ in _all(root) if kind == _REPLACED}
    return sorted(name for name in names if not os.path.lexists(root / name))


def put_back(folder: Path) -> None:
    """Give a checkpoint its name back that a killed save took from it."""
    copy = replaced(folder)
    if copy is not None:
        os.rename(copy, folder)


def clear(folder: Path, own: Own) -> None:
    """Remove what killed saves left next to an existing folder."""
    for copy in _of(folder, _SAVING, _REPLACED):
        remove(copy, folder, own)


def remove(copy: Path, folder: Path, own: Own) -> None:
    """Remove a hidden folder: its checkpoint files, by `own`, are deleted, all others move into `folder`."""
    try:
        names = own(copy)
        for name in os.listdir(copy):
            if name in names:
                _unlink(copy / name)
            elif folder.is_dir() and not os.path.lexists(folder / name):
                os.rename(copy / name, folder / name)
        os.rmdir(copy)  # fails if something stayed in it, and leaves it
    except OSError:
        return  # the checkpoint is written; what cannot be removed now may be at the next save


def _unlink(file: Path) -> None:
    if file.is_symlink() or not file.is_dir():
        file.unlink(missing_ok=True)


def _of(folder: Path, *kinds: str) -> Iterator[Path]:
    return (path for name, kind, path in _all(folder.parent) if name == folder.name and kind in kinds)


def _all(root: Path) -> list[tuple[str, str, Path]]:
    """Name of the checkpoint, kind and path of each hidden folder."""
    try:
        with os.scandir(root) as found:
            folders = [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return []
    matches = filter(None, map(_HIDDEN.fullmatch, folders))
    return [(match["name"], match["kind"], root / match[0]) for match in matches]


_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # Linux: <fcntl.h>, <linux/fs.h>
_RENAME_SWAP = 2  # macOS: <sys/stdio.h>

# The system or the file system cannot do it; EPERM is how some sandboxes answer calls that they do not know.
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP}


def exchange(a: Path, b: Path) -> bool:
    """Let two existing folders change names; False if the system cannot do it there, an `OSError` if it failed."""
    name = {"linux": "renameat2", "darwin": "renamex_np"}.get(sys.platform, "")
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None) if name else None
    if function is None:
        return False  # Windows; glibc before 2.28
    here, there = ctypes.c_char_p(os.fsencode(a)), ctypes.c_char_p(os.fsencode(b))
    places = (_AT_FDCWD, here, _AT_FDCWD, there, _RENAME_EXCHANGE)
    if function(*(places if name == "renameat2" else (here, there, _RENAME_SWAP))) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT:
        return False
    raise OSError(code, os.strerror(code), str(a), None, str(b))


def version_of(status: os.stat_result) -> Version:
    """What changes when a file is changed or replaced."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def version_now(path: Path) -> Version:
    """That of a file as it is now; empty if there is none, or no link leads to it."""
    try:
        return version_of(path.stat())
    except (OSError, RuntimeError):
        return ()


def sync_folder(folder: Path) -> None:
    """Write a folder's names to the disk, or an `OSError`: renamed files stay renamed when the power fails."""
    if os.name == "nt":
        return  # Windows cannot open a folder
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes, partial: Path | None = None) -> None:
    """Write a file that is there whole or not at all: as `partial` first, and on the disk before it gets its name."""
    partial = partial or path.with_name(f".{path.name}.new")
    try:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
