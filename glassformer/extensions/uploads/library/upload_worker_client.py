"""Client of the upload worker: sends requests, validates results.

    worker = Worker()
    read = worker.read(files, folder, title="lesson", pickles=True)
    transformer.load(folder / "made" / "lesson")

The first request starts it, which takes as long as importing torch; it serves more requests until `end`.
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.extensions.uploads.library import upload_folder, upload_worker
from glassformer.extensions.uploads.library.archives import OURS, UploadLimits
from glassformer.extensions.uploads.library.upload_folder import Read, Received
from glassformer.extensions.weight_files.pickles import KEPT
from glassformer.extensions.weight_files.weight_folder import TENSORS
from transformer import sandbox
from transformer.errors import CheckpointError, ClauseError
from transformer.extensions import provided
from transformer.files import strictjson
from transformer.files.untrusted_folder import FolderFiles

ROOT = Path(__file__).resolve().parents[4]
MODULE = "glassformer.extensions.uploads.library.upload_worker"
START_SECONDS, GRACE_SECONDS, LOOK_SECONDS = 300.0, 10.0, 0.1
MOST_RESULT = 1_000_000
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Done:
    """How far a request is."""

    done: int = 0  # files that are read, and all of them
    most: int = 0  # files that are read, and all of them
    name: str = ""  # of the one at hand


class Worker:
    """The process, as one thread of a server uses it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def read(
        self,
        received: Sequence[Received],
        folder: Path,
        *,
        title: str,
        pickles: bool,
        limits: UploadLimits = OURS,
        progress: Callable[[Done], object] = lambda _: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Read:
        """Read an upload, or refuse it; the result is in `folder / "made" / title`.

        The folder is for this request alone; files inside it are in a subfolder. `stop` is polled; once it returns
        True, the process is ended.
        """
        request = {
            "folder": str(folder), "files": [(one.name, str(one.path)) for one in received], "title": title,
            "pickles": pickles, "limits": asdict(limits),
        }  # fmt: skip
        for last in (False, True):
            _clear(folder, keep=received)
            most = sandbox.bytes_below(folder) + 3 * limits.unpacked  # the upload is in it, too
            self._send(json.dumps(request))
            how = self._waited(folder, limits, most, progress, stop)
            if (
                self._process is not None or last
            ):  # else it was ended from outside, which says nothing about these files
                break
        return _taken(how, folder, title, limits)

    def _waited(
        self,
        folder: Path,
        limits: UploadLimits,
        most_bytes: int,
        progress: Callable[[Done], object],
        stop: Callable[[], bool],
    ) -> str:
        """How it ended; stopped if the folder exceeds `most` bytes."""
        end, stopped = time.monotonic() + limits.seconds + GRACE_SECONDS, False
        while (how := self._line(LOOK_SECONDS)) is None:
            progress(_progress(folder))
            full = sandbox.bytes_below(folder) > most_bytes
            if not stopped and (stop() or full):
                self._send("stop")
                stopped = True
            if time.monotonic() > end:
                self.end()
                return "time"
        return how

    def warm(self) -> None:
        """Start the process, if it does not run; CheckpointError if it cannot be started."""
        self._running()

    def end(self) -> None:
        """End the process, if it runs."""
        process, self._process = self._process, None
        sandbox.end(process)

    @property
    def pid(self) -> int | None:
        """Of the process; None while it does not run."""
        return None if self._process is None else self._process.pid

    def _send(self, line: str) -> None:
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self.end()

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.end()
        environment = {key: os.environ[key] for key in KEPT if key in os.environ} | _ONE_THREAD
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            bufsize=0,
        )
        if self._line(START_SECONDS) != "ready":
            self.end()
            raise CheckpointError(
                "The process that reads uploads could not be started; contact the person who runs this server."
            )
        return self._process

    def _line(self, seconds: float) -> str | None:
        """The process's answer; None after a timeout, "crashed" if it has ended."""
        if self._process is None or self._process.stdout is None:
            return "crashed"
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            return None
        line = self._process.stdout.readline(100)
        if not line:
            self.end()
        return line.decode("ascii", errors="replace").strip() or "crashed"


def _clear(folder: Path, *, keep: Sequence[Received]) -> None:
    """Remove an earlier request's files; the same files may be read again."""
    kept = {one.path.parent for one in keep}
    for place in folder.iterdir():
        if place in kept:
            continue
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()


def _taken(how: str, folder: Path, title: str, limits: UploadLimits) -> Read:
    if how == "time":
        raise CheckpointError(
            "Reading the files takes longer than the {seconds} seconds allowed for one upload; put the files into "
            "a folder of checkpoints instead.",
            seconds=limits.seconds,
        )
    record = _result(folder)
    if "refused" in record:
        raise CheckpointError(upload_worker.sentence(record["refused"]))
    if how != "done" or not isinstance(record.get("left_out"), list):
        raise CheckpointError(upload_worker.CRASHED)
    _check_made(folder / upload_worker.MADE / title, limits)
    return Read(record.get("native") is True, tuple(map(str, record["left_out"][: limits.files])))


def _result(folder: Path) -> dict[str, Any]:
    try:
        content = FolderFiles(folder, inside=folder.resolve()).read(upload_worker.RESULT, limit=MOST_RESULT)
        record = strictjson.parse(content)
    except (CheckpointError, ClauseError):
        return {}
    return record if isinstance(record, dict) else {}


def _check_made(made: Path, limits: UploadLimits) -> None:
    """Check that there are only plain files of the kinds that `upload_folder` writes, within the limits."""
    files = FolderFiles(made, inside=made.parents[1].resolve())
    names = os.listdir(made)
    whole = (one.suffix for one in provided("formats") if one.suffix)
    endings = {TENSORS, ".json", *upload_folder.SENTENCEPIECE, *upload_folder.TEXTS, *whole}
    if len(names) > 2 * limits.files or any(Path(name).suffix.lower() not in endings for name in names):
        raise CheckpointError(upload_worker.CRASHED)
    for name in names:
        files.check_size(name, limit=2 * limits.unpacked)


def _progress(folder: Path) -> Done:
    try:
        record = strictjson.parse(FolderFiles(folder).read(upload_worker.PROGRESS, limit=10_000))
        return Done(int(record["done"]), int(record["most"]), str(record["name"]))
    except (ValueError, KeyError, TypeError, OSError):
        return Done()
