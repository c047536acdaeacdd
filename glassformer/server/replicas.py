"""Server folders: a private one, and one shared by replicas (names, file locks, last use); records as JSON.

    GLASSFORMER_STORE=redis://...      GLASSFORMER_SHARED=/a/folder/that/all/see

The shared folder holds uploaded models, trainings and file runs, each under an unguessable name. Every replica can open
them there, and removes those that were not used lately, by the modification time. The replica that has a training
locks it (flock), so a network file system has to support locks, as NFS 4 does, and the clocks of its machines have to
agree.

A record is written as its name with its fields in order; a sentence as its text in each language, since a part of it
may be a function.
"""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from transformer.errors import DataError
from transformer.i18n import ENGLISH, Sentence, in_every_language, in_languages, joined, say


class Lock:
    """A file that one process holds, until it lets go or ends."""

    def __init__(self, path: Path) -> None:
        self._path, self._held = path, -1

    def take(self) -> bool:
        """Try to lock it; return whether that succeeded."""
        import fcntl  # Windows has none, and uploads and training are off there

        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        for _ in range(5):  # somebody may just look
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._held = descriptor
                return True
            time.sleep(0.01)
        os.close(descriptor)
        return False

    def let_go(self) -> None:
        """Hold it no longer; a second time nothing happens."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def is_others(self) -> bool:
        """Whether another process holds it."""
        if self._held >= 0 or not self._path.exists():
            return False
        look = Lock(self._path)
        taken = look.take()
        look.let_go()
        return not taken


# ------------------------------------------------------------------------------------------------ private

LOCK = "in-use"


class OwnFolder:
    """The folder: `shared`, or one made in `place`, by default the system's for temporary files."""

    def __init__(self, prefix: str, place: Path | None = None, shared: Path | None = None) -> None:
        self.is_shared = shared is not None
        if shared is not None:
            self.root = shared
            return
        place = Path(tempfile.gettempdir()) if place is None else place
        _remove_stale(place, prefix)
        self.root = Path(tempfile.mkdtemp(prefix=prefix, dir=place)).resolve()
        self._in_use = Lock(self.root / LOCK)
        self._in_use.take()

    def close(self) -> None:
        """Remove it with all that is in it, if it is this server's alone; a second time nothing happens."""
        if not self.is_shared:
            shutil.rmtree(self.root, ignore_errors=True)
            self._in_use.let_go()


def _remove_stale(place: Path, prefix: str) -> None:
    """Remove the folders of servers that were killed: nobody holds their files."""
    for folder in place.glob(prefix + "*"):
        lock = Lock(folder / LOCK)
        with suppress(OSError):  # of somebody else, or just removed
            is_own = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
            if is_own and (folder / LOCK).exists() and lock.take():
                shutil.rmtree(folder, ignore_errors=True)
                lock.let_go()


# ------------------------------------------------------------------------------------------------ shared

STORE: Final = "GLASSFORMER_STORE"
SHARED: Final = "GLASSFORMER_SHARED"
PARTS: Final = ("models", "trainings", "sentences")
_NAME: Final = re.compile(r"[\w-]{16,64}", re.ASCII)
_ELSEWHERE: Final = say(
    "This server has several replicas, and it may be on another one. Ask who runs the server to set {setting}.",
    setting=SHARED,
)


def check() -> None:
    """Look whether the shared folder is one, if there is any. Raises `DataError`."""
    for part in PARTS:
        folder(part)


def folder(part: str) -> Path | None:
    """A part of the shared folder, created if missing; None if replicas share none. `DataError`: not writable."""
    said = os.environ.get(SHARED)
    if not said:
        return None
    found = Path(said).expanduser() / part
    with suppress(OSError):
        found.mkdir(mode=0o700, exist_ok=True)
    if not os.access(found, os.W_OK | os.X_OK):
        raise DataError(
            "{setting} is “{found}”, but this server cannot write into a folder there. Make one that the server's "
            "user owns.",
            setting=SHARED,
            found=said,
        )
    return found.resolve()


def gone(said: Sentence) -> Sentence:
    """What is said of a thing that is not here; where replicas share no folder, also that it may be on another."""
    apart = bool(os.environ.get(STORE)) and not os.environ.get(SHARED)
    return joined(" ", [said, _ELSEWHERE]) if apart else said


def named(root: Path, name: str) -> Path | None:
    """The folder, or file, of that name in a shared folder; None if there is none, or nothing is ever called so."""
    found = root / name
    return found if _NAME.fullmatch(name) and found.exists() else None


def names(root: Path) -> list[str]:
    """What all that lies there is called; nothing, while the folder cannot be read."""
    with suppress(OSError):
        return [one.name for one in root.iterdir() if _NAME.fullmatch(one.name)]
    return []


def touch(path: Path) -> None:
    """Note that something was used now."""
    with suppress(OSError):
        os.utime(path)


def seconds_since(path: Path) -> float:
    """How long ago it was used; for ever, if it is not there any more; 0 where the folder does not answer."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")
    except OSError:
        return 0.0


_TUPLE, _MAP, _SENTENCE = "", "map", "said"


def written(value: Any) -> str:
    """A value as JSON."""
    return json.dumps(_plain(value), separators=(",", ":"))


def read(text: str, records: Collection[Callable[..., Any]] = ()) -> Any:
    """The value; of records, those may be in it. Raises `ValueError`, `KeyError` or `TypeError`: none was written."""
    return _value(json.loads(text), {one.__name__: one for one in records})


def _plain(value: Any) -> Any:
    """Scalars as they are; all else is a list of what it is and what it is made of."""
    if isinstance(value, Sentence):
        return [_SENTENCE, in_every_language(value)]
    if is_dataclass(value):
        return [type(value).__name__, [_plain(getattr(value, field.name)) for field in fields(value)]]
    if isinstance(value, tuple):
        named = type(value).__name__ if hasattr(value, "_fields") else _TUPLE
        return [named, [_plain(part) for part in value]]
    if isinstance(value, Mapping):
        return [_MAP, {name: _plain(part) for name, part in value.items()}]
    return value


def _value(plain: Any, records: Mapping[str, Callable[..., Any]]) -> Any:
    if not isinstance(plain, list):
        return plain
    kind, made_of = plain
    if kind == _SENTENCE:
        return in_languages({ENGLISH: made_of[ENGLISH], **made_of})
    if kind == _MAP:
        return {name: _value(part, records) for name, part in made_of.items()}
    parts = tuple(_value(part, records) for part in made_of)
    return parts if kind == _TUPLE else records[kind](*parts)
