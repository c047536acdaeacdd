"""The hidden folders that a save makes beside a checkpoint folder, and what to do with those that it left.

    .NAME.xxxxxxxx.saving     the new files, complete or not; after the exchange, the old ones
    .NAME.xxxxxxxx.replaced   the old folder, where two folders cannot be exchanged in one call

A save that ends removes its own. One that is killed leaves them; the next save clears them away. If it was killed
while there was no folder NAME, the `.replaced` one is the checkpoint: reading says so, the next save puts it back.

Only files that a checkpoint consists of are ever removed, by name. Whatever else lies there goes into the folder.
"""

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

Own = Callable[[Path], Collection[str]]

_SAVING, _REPLACED = ".saving", ".replaced"
_HIDDEN = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}(?P<kind>\.saving|\.replaced)", re.DOTALL)


def make(folder: Path) -> Path:
    """A new, empty, hidden folder for the files that shall stand in `folder`."""
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
    """Remove what killed saves left beside a folder that is there."""
    for copy in _of(folder, _SAVING, _REPLACED):
        remove(copy, folder, own)


def remove(copy: Path, folder: Path, own: Own) -> None:
    """Remove a hidden folder: of its files those that a checkpoint there consists of, by `own`, and no others.

    All else that lies in it goes into `folder`.
    """
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
