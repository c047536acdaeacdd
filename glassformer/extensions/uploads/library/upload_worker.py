"""Upload worker: a process that forks a sandboxed child per upload, and the server's end of it, `Worker`.

    worker = Worker()
    read = worker.read(files, folder, title="lesson", pickles=True)
    transformer.load(folder / "made" / "lesson")

The first request starts the process, preloaded, which takes as long as importing torch; it serves more until `end`. It
reads them from its standard input, one line of JSON each, and answers each with a line: how the forked process ended. A
second line before the answer cancels it. It opens no uploaded file, and ends with its server.

The forked process confines itself, reads the upload, and writes `progress.json` and then `result.json` into its folder,
with codes and sentences as data. The server does not trust these files, nor what was made.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer.extensions.uploads.library import upload_folder
from glassformer.extensions.uploads.library.archives import OURS, UploadLimits
from glassformer.extensions.uploads.library.upload_folder import Read, Received
from glassformer.extensions.weight_files.pickles import KEPT
from glassformer.extensions.weight_files.weight_folder import TENSORS
from transformer import sandbox
from transformer.errors import CheckpointError, ClauseError, GlassformerError
from transformer.extensions import provided
from transformer.files import strictjson
from transformer.files.untrusted_folder import FolderFiles
from transformer.i18n import Sentence, in_every_language, in_languages, languages, said, say

ROOT = Path(__file__).resolve().parents[4]
MODULE = "glassformer.extensions.uploads.library.upload_worker"
START_SECONDS, GRACE_SECONDS, LOOK_SECONDS = 300.0, 10.0, 0.1
CHILD_LOOK_SECONDS = 0.02
MOST_RESULT = 1_000_000
MOST_TEXT = 4_000
RESULT, PROGRESS = "result.json", "progress.json"
MADE, WORK = "made", "work"
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_SUBREAPER = 36

CRASHED = say(
    "The process that read the files stopped unexpectedly, so one of the files is damaged; copy or download it again."
)
TOO_LARGE = say(
    "Reading the files needs more memory than one upload may use; put the files into a folder of checkpoints instead."
)


# ------------------------------------------------------------------------------------------------ the process


def _read(request: Mapping[str, Any]) -> None:
    """Handle one request.

    It has `folder`, the only writable folder; `files`, pairs of a name and a path; `title`, the new folder's name;
    `pickles`; `limits`, the fields of `UploadLimits`.
    """
    folder, limits = Path(request["folder"]), UploadLimits(**request["limits"])
    received = [Received(name, Path(path)) for name, path in request["files"]]
    made, work = folder / MADE / request["title"], folder / WORK
    made.mkdir(parents=True)
    work.mkdir()
    os.chdir(work)
    os.environ["TMPDIR"] = tempfile.tempdir = str(work)
    done = sandbox.confine(folder, [], memory=limits.memory, seconds=limits.seconds, file_bytes=limits.unpacked + 2**24)
    _write(folder / RESULT, {"confined": done} | _result(received, made, work, request["pickles"], limits))


def _result(received: list[Received], made: Path, work: Path, pickles: bool, limits: UploadLimits) -> dict[str, Any]:
    def show(done: int, most: int, name: str) -> None:
        _write(made.parents[1] / PROGRESS, {"done": done, "most": most, "name": name})

    try:
        return asdict(upload_folder.read(received, made, work=work, pickles=pickles, limits=limits, progress=show))
    except GlassformerError as error:
        return {"refused": in_every_language(error.sentence)}
    except MemoryError:
        return {"refused": in_every_language(TOO_LARGE)}
    except RuntimeError as error:  # how torch says it
        if "memory" not in str(error):
            raise
        return {"refused": in_every_language(TOO_LARGE)}


def _write(path: Path, record: Mapping[str, Any]) -> None:
    """Write atomically, because another process may be reading."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record), encoding="ascii")
    new.replace(path)


def main() -> None:
    """Serve requests until the input ends."""
    sandbox.die_with_parent()
    _adopt()
    in_every_language(CRASHED)  # reads the catalogues, as a confined process may not
    for field in ("readers", "tokenizers", "formats", "changes"):
        provided(field)  # a confined process can import nothing
    lines = _Lines()
    _answer("ready")
    while line := lines.next(None):
        request = json.loads(line)
        _answer(_done(request, lines))


def _done(request: Mapping[str, Any], lines: "_Lines") -> str:
    """Fork, and wait: "done", "time", "stopped" or "crashed"."""
    pid = os.fork()
    if not pid:
        _be_the_child(request)
    end = time.monotonic() + request["limits"]["seconds"]
    how = ""
    while not how:
        stopped = lines.next(CHILD_LOOK_SECONDS) is not None
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
            return _cleared("time" if slow else "done" if status == 0 else "crashed")
        how = "stopped" if stopped else "time" if time.monotonic() > end else ""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return _cleared(how)


def _be_the_child(request: Mapping[str, Any]) -> None:
    status = 1
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        _read(request)
        status = 0
    finally:
        os._exit(status)


def _adopt() -> None:
    """Become the parent of orphans of a forked process, to end them."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _cleared(how: str) -> str:
    """End all processes that a forked process left."""
    while True:
        with contextlib.suppress(OSError):
            for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split():
                os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return how


def _answer(word: str) -> None:
    os.write(1, word.encode() + b"\n")


class _Lines:
    """Non-blocking lines of the standard input."""

    def __init__(self) -> None:
        self._rest, self._ended = b"", False

    def next(self, seconds: float | None) -> str | None:
        """The next line; None after a timeout, empty at the end of the input."""
        while b"\n" not in self._rest:
            if self._ended:
                return ""
            if not select.select([0], [], [], seconds)[0]:
                return None
            part = os.read(0, 65536)
            self._rest += part
            self._ended = not part
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


# ------------------------------------------------------------------------------------------------ the server


@dataclass(frozen=True)
class Done:
    """How far a request is."""

    done: int = 0  # files that are read
    most: int = 0  # all of them
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
        for _ in range(2):
            _clear(folder, keep=received)
            most = sandbox.bytes_below(folder) + 3 * limits.unpacked  # the upload is in it, too
            self._send(json.dumps(request))
            how = self._waited(folder, limits, most, progress, stop)
            if self._process is not None:  # else it was ended from outside, which says nothing about these files
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
    record = _record(folder)
    if "refused" in record:
        raise CheckpointError(sentence(record["refused"]))
    if how != "done" or not isinstance(record.get("left_out"), list):
        raise CheckpointError(CRASHED)
    _check_made(folder / MADE / title, limits)
    return Read(record.get("native") is True, tuple(map(str, record["left_out"][: limits.files])))


def _record(folder: Path) -> dict[str, Any]:
    try:
        content = FolderFiles(folder, inside=folder.resolve()).read(RESULT, limit=MOST_RESULT)
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
        raise CheckpointError(CRASHED)
    for name in names:
        files.check_size(name, limit=2 * limits.unpacked)


def _progress(folder: Path) -> Done:
    try:
        record = strictjson.parse(FolderFiles(folder).read(PROGRESS, limit=10_000))
        return Done(int(record["done"]), int(record["most"]), str(record["name"]))
    except (ValueError, KeyError, TypeError, OSError):
        return Done()


def sentence(data: Any) -> Sentence:
    """The sentence that data of `in_every_language` are; a plain one for any other data."""
    try:
        found = in_languages(data)
        if all(len(said(found, language)) <= MOST_TEXT for language in languages()):
            return found
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    return say("The files cannot be read.")


if __name__ == "__main__":
    main()
