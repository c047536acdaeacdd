"""Access to an untrusted folder (`FolderFiles`): no links out, size limits, changes noticed; names for messages.

Only regular files inside the folder are opened: a link that leaves it, a pipe or a device is refused unread. Each file
is read once, and `changed` tells whether any was replaced meanwhile.
"""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from transformer.errors import CheckpointError, DataError, shown, within
from transformer.files import atomic_saves, strictjson
from transformer.files.atomic_saves import Version, version_now, version_of
from transformer.i18n import say

# Opening a pipe would block; a link that appeared since the check is not followed.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


class FolderFiles:
    """The files of one folder, which has to exist.

    `inside` is a real path that it and its files may not leave by a link, even a new one (None: no limit). Messages
    call the folder `called`; else by its path from `inside` on, or as it was typed. `labels` are what they call single
    files.
    """

    def __init__(
        self,
        folder: Path,
        *,
        inside: Path | None = None,
        called: str | None = None,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._before = as_typed(folder, inside) if called is None else called
        self._labels = labels
        self.name = self._before or folder.name or str(folder)
        self._inside_of = inside
        try:
            self._root = folder.resolve(strict=True)
            is_folder = stat.S_ISDIR(self._root.stat().st_mode)
        except (OSError, ValueError, RuntimeError) as error:  # a NUL in the name; links in a circle
            raise _no_folder(folder, self.name) from error
        if not is_folder:
            raise CheckpointError("{folder}: expected a folder, found a file.", folder=self.name)
        self._check_inside(self._root)
        self._versions: dict[Path, Version] = {}

    def label(self, name: str) -> str:
        """How messages call a file."""
        return self._labels.get(name) or os.path.join(self._before, name)

    def has(self, name: str) -> bool:
        """Whether there is anything of this name."""
        return os.path.lexists(self._root / name)

    def read(self, name: str, *, limit: int) -> bytes:
        """All bytes of a file, which has to be as `open` wants it, and no longer than `limit`."""
        with self.open(name) as (file, size):
            self._check_size(name, size, limit)
            content = file.read(size + 1)
        if len(content) != size:
            raise CheckpointError("{label}: changed while it was being read; try again.", label=self.label(name))
        return content

    def json(self, name: str, *, limit: int) -> Any:
        """A JSON document, parsed by strict rules; errors are those of `read`, or say what is wrong in it."""
        with within(self.label(name)):
            return strictjson.parse(self.read(name, limit=limit))

    def check_size(self, name: str, *, limit: int) -> None:
        """`read`, without reading."""
        with self.open(name) as (_, size):
            self._check_size(name, size, limit)

    @contextmanager
    def open(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """Open a regular file, with its size in bytes; a `CheckpointError` if it is missing, outside or unreadable."""
        try:
            path = self._inside(name)
            descriptor = os.open(path, _FLAGS)
        except FileNotFoundError:
            raise CheckpointError("{label}: is missing.", label=self.label(name)) from None
        except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            reason = getattr(error, "strerror", None) or say("its symbolic links form a loop")
            raise CheckpointError(
                "{label}: cannot be read ({reason}).", label=self.label(name), reason=reason
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            self._check_regular(name, status)
            self._check_inside(_path_of(file.fileno()))
            self._versions[self._root / name] = version_of(status)
            yield file, status.st_size

    def changed(self) -> list[str]:
        """Names of the files that were replaced or rewritten since they were opened."""
        return [path.name for path, version in self._versions.items() if version_now(path) != version]

    def _inside(self, name: str) -> Path:
        path = (self._root / name).resolve(strict=True)
        if not path.is_relative_to(self._root) and not _is_blob(path, self._root):
            raise CheckpointError(
                "{label}: is a link that points outside the folder; put the file itself into the folder.",
                label=self.label(name),
            )
        self._check_regular(name, path.lstat())
        return path

    def _check_inside(self, path: Path | None) -> None:
        if self._inside_of and path and not path.is_relative_to(self._inside_of):
            raise CheckpointError(
                "{folder}: now points to a place outside the folder of checkpoints; put the files themselves into "
                "the folder of checkpoints.",
                folder=shown(self.name),
            )

    def _check_size(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            raise CheckpointError(
                "{label}: has {n:,} byte; the limit is {limit:,}.",
                "{label}: has {n:,} bytes; the limit is {limit:,}.",
                size,
                label=self.label(name),
                limit=limit,
            )

    def _check_regular(self, name: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError("{label}: is not a regular file.", label=self.label(name))


def as_typed(path: Path, inside: Path | None) -> str:
    """How messages call a path: from a folder that it may not leave on, empty for that folder itself; else whole.

    What lies in huggingface_hub's cache is called as on the hub.
    """
    for above in (path, path.parent):
        if (hub := hub_name(above)) is not None:
            return hub if above is path else f"{hub}/{path.name}"
    if inside is not None:
        path = path.relative_to(inside) if path.is_relative_to(inside) else Path(path.name)
    name = "" if path == Path() else str(path)
    return name if name.isprintable() else shown(name)


def hub_name(folder: Path) -> str | None:
    """The name on the hub of a model's folder in huggingface_hub's cache; None for any other folder."""
    repository = folder.parent.parent.name if folder.parent.name == "snapshots" else ""
    return repository.removeprefix("models--").replace("--", "/") if repository.startswith("models--") else None


def name_of(folder: Path) -> str:
    """What a model in a folder is called: by the hub's name, else as the folder."""
    folder = folder.resolve()
    return hub_name(folder) or folder.name


def _is_blob(path: Path, root: Path) -> bool:
    """Whether a link from a snapshot in huggingface_hub's cache leads to where the same repository's files lie."""
    repository = root.parents[1] if len(root.parents) > 2 and root.parent.name == "snapshots" else None
    return repository is not None and repository.name.startswith("models--") and path.parent == repository / "blobs"


def _no_folder(folder: Path, name: str) -> CheckpointError:
    copy = atomic_saves.replaced(folder)
    if copy is None:
        return CheckpointError("{path}: there is no such file or folder.", path=name)
    return CheckpointError(
        "{folder}: a save was interrupted while it was replacing this folder; the previous files are in {copy}. "
        "Rename that folder to {folder}, or save again: the next save restores the previous files.",
        folder=shown(name),
        copy=shown(copy.name),
    )


def _path_of(descriptor: int) -> Path | None:
    """Where an open file really is, whatever its folders are called by now; None if the system does not tell."""
    try:
        if sys.platform == "darwin":
            import fcntl

            return Path(os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0")))
        return Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    except (OSError, ValueError):
        return None


def read_start(path: Path, most: int = -1) -> bytes:
    """The first bytes of a file, or all."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise DataError("{label}: cannot be read ({reason}).", label=str(path), reason=str(error.strerror)) from None


def decoded(content: bytes, *, label: str) -> str:
    """Text in UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            "{file}: is not UTF-8 (byte {place:,}: {byte:#04x}); save it as UTF-8.",
            file=label,
            place=error.start,
            byte=content[error.start],
        ) from None
