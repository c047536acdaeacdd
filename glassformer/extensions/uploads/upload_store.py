"""Upload store: a private temporary folder with expiry; the thread that has the sandboxed worker read uploads.

Each upload has an unguessable token. Anyone with the token can use the upload, so a link shares it; only the session
that uploaded it lists it. An upload is removed after an hour without use, all of them when the server ends; the next
server removes what a killed one left. `ABOUT` describes each upload that was read; in a folder that replicas share, any
of them opens and removes it, and it outlives them.

Only one is read at a time, because reading shares the CPU with decoding. Another process does it, see
`extensions.uploads.library`; a thread waits for it, as a job of `glassformer.server.jobs`.
"""

import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from glassformer.extensions.uploads.library.upload_folder import Read, Received
from glassformer.extensions.uploads.library.upload_worker import Worker
from glassformer.server import replicas
from glassformer.server.jobs import Job
from glassformer.server.replicas import OwnFolder
from transformer.errors import CheckpointError, GlassformerError
from transformer.i18n import say

PREFIX = "glassformer-inbox-"
KEPT_SECONDS = 3600.0  # without use
WAITING_SECONDS = 900.0  # of files that were not read yet
MOST_BYTES = 4 * 2**30
SHARE_OF_DISK = 0.5  # of the free space
MOST_KEPT = 200
RECEIVED = "received"
ABOUT = ".about.json"


@dataclass(frozen=True)
class Upload:
    """Uploaded files, or their result."""

    token: str  # its unguessable name
    folder: Path  # all that belongs to it
    title: str  # its title, once it was read
    n_bytes: int  # its reserved size
    native: bool = False  # whether it is a checkpoint of this program
    left_out: tuple[str, ...] = ()  # names of files that were left out

    @property
    def made(self) -> Path:
        """The folder that can be opened."""
        return self.folder / self.title


class UploadStore(OwnFolder):
    """All uploads of one server.

    Their folder is made in `place`, or in the system's temporary folder, unless it is `shared`; its size is limited.
    `forgotten` is called with each upload that is removed.
    """

    def __init__(
        self,
        place: Path | None = None,
        *,
        shared: Path | None = None,
        most: int = MOST_BYTES,
        forgotten: Callable[[Upload], object] = lambda _: None,
    ) -> None:
        super().__init__(PREFIX, place, shared)
        self._most, self._forgotten = most, forgotten
        self._lock = threading.RLock()
        self._found: dict[str, Upload] = {}

    def begin(self) -> Upload:
        """Make room for files of one upload, which has none yet. Raises `CheckpointError`: there are too many."""
        self.sweep()
        with self._lock:
            if len(self._found) >= MOST_KEPT:
                raise CheckpointError(
                    "This server already holds {n} uploaded models, the most that it can take; try again in a few "
                    "minutes.",
                    n=len(self._found),
                )
            token = secrets.token_urlsafe(16)
            folder = self.root / token
            (folder / RECEIVED).mkdir(parents=True, mode=0o700)
            found = self._found[token] = Upload(token, folder, "", 0)
            return found

    def count(self, token: str, n_bytes: int) -> None:
        """Reserve bytes for an upload. Raises `CheckpointError`: there is not enough space, or the upload is gone."""
        with self._lock:
            upload = self._found.get(token)
            if upload is None:
                raise gone()
            if n_bytes > self.room():
                raise CheckpointError(
                    "There is no room for {needed:,} more bytes on this server ({room:,} are left for uploads); try "
                    "again later.",
                    needed=n_bytes,
                    room=max(self.room(), 0),
                )
            self._use(replace(upload, n_bytes=upload.n_bytes + n_bytes))

    def room(self) -> int:
        """Bytes that may still be counted."""
        with self._lock:
            taken = sum(one.n_bytes for one in self._found.values())
            free = shutil.disk_usage(self.root).free
            return min(self._most - taken, int(SHARE_OF_DISK * free))

    def keep(self, token: str, made: Path, *, native: bool, left_out: tuple[str, ...]) -> Upload:
        """Keep the result of an upload, a folder inside it, and delete the rest; a CheckpointError if it is gone."""
        with self._lock:
            upload = self._found.get(token)
            if upload is None:
                raise gone()
            aside = self.root / f"{token}-read"  # a name that is swept if this process ends now
            os.rename(upload.folder, aside)
            upload.folder.mkdir(mode=0o700)
            os.rename(aside / made.relative_to(upload.folder), upload.folder / made.name)
            shutil.rmtree(aside, ignore_errors=True)
            n_bytes = sum(file.stat().st_size for file in (upload.folder / made.name).iterdir())
            kept = replace(upload, title=made.name, n_bytes=n_bytes, native=native, left_out=left_out)
            about = {name: getattr(kept, name) for name in ("title", "n_bytes", "native", "left_out")}
            (upload.folder / ABOUT).write_text(json.dumps(about), encoding="utf-8")
            return self._use(kept)

    def find(self, token: str) -> Upload | None:
        """An upload that was read, by its name; that counts as using it."""
        with self._lock:
            self._adopt(token)
            found = self._found.get(token)
            if found is None or not found.title:
                return None
            self._use(found)
            return found

    def _use(self, upload: Upload) -> Upload:
        """Record that an upload was used."""
        self._found[upload.token] = upload
        replicas.touch(upload.folder)
        return upload

    def _adopt(self, token: str) -> None:
        """Load an upload of another replica, even unfinished, or drop one that was removed."""
        folder, known = replicas.named(self.root, token), self._found.get(token)
        if folder is None:
            self._let_go(token)  # keep its files: it may be in the process of being moved
        elif known is None or not known.title:
            found = Upload(token, folder, "", 0) if known is None else known
            with suppress(OSError, ValueError, TypeError, KeyError):
                about = json.loads((folder / ABOUT).read_bytes())
                found = replace(
                    found, **about | {"title": Path(about["title"]).name, "left_out": tuple(about["left_out"])}
                )
            self._found[token] = found

    def is_gone(self, token: str) -> bool:
        """Whether there is no such upload any more, read or not."""
        return token not in self._found

    def forget(self, token: str) -> None:
        """Remove an upload and its files."""
        found = self._let_go(token)
        if found is not None:
            shutil.rmtree(found.folder, ignore_errors=True)

    def _let_go(self, token: str) -> Upload | None:
        with self._lock:
            found = self._found.pop(token, None)
        if found is not None:
            self._forgotten(found)
        return found

    def sweep(self) -> None:
        """Remove what was unused for long."""
        with self._lock:
            for token in {*self._found, *replicas.names(self.root)}:
                self._adopt(token)
            old = [
                token
                for token, one in self._found.items()
                if replicas.seconds_since(one.folder) > (KEPT_SECONDS if one.title else WAITING_SECONDS)
            ]
        for token in old:
            self.forget(token)

    def close(self) -> None:
        """Remove everything that belongs to this server only; idempotent."""
        with self._lock:
            self._found.clear()
        super().close()

    def __len__(self) -> int:
        return len(self._found)


def gone() -> CheckpointError:
    """What is said of an upload that is not there any more."""
    said = say(
        "This upload is no longer available: uploads are deleted after {minutes} minutes without use. Upload the "
        "files again.",
        minutes=round(KEPT_SECONDS / 60),
    )
    return CheckpointError(replicas.gone(said))


IDLE_SECONDS = 60.0  # until the process that reads is ended


class UploadReader:
    """The process that reads, and the thread that starts it: the process ends with that."""

    def __init__(self, worker: Worker | None = None) -> None:
        self._worker, self._thread = worker or Worker(), ThreadPoolExecutor(1)
        self._used = time.monotonic()

    def expect(self) -> None:
        """Start the process before an upload, because it takes a few seconds; a failure is shown to who uploads."""
        self._used = time.monotonic()
        self._thread.submit(self._worker.warm)

    def work(self, received: Sequence[Received], folder: Path, *, title: str, pickles: bool) -> Callable[[Job], Read]:
        """What a job does that has files read, and tells how far it is."""

        def read(job: Job) -> Read:
            try:
                return self._worker.read(
                    received, folder, title=title, pickles=pickles, progress=job.tell, stop=job.stopped.is_set
                )
            except GlassformerError:
                raise
            except Exception as error:  # a full disk, a process that cannot be started
                self._worker.end()
                raise CheckpointError("The files could not be read on this server; try again later.") from error
            finally:
                self._used = time.monotonic()

        return lambda job: self._thread.submit(read, job).result()

    def rest(self, idle: float = IDLE_SECONDS) -> None:
        """End the process, if nobody has used it for so long."""
        if time.monotonic() - self._used > idle:
            self._thread.submit(self._worker.end)

    def end(self) -> None:
        """End the process, after what it reads."""
        self._thread.submit(self._worker.end)
        self._thread.shutdown()
