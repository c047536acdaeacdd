"""Upload worker: a preloaded process that forks a sandboxed child per upload; its error sentences as JSON.

It reads requests from its standard input, one line of JSON each, and answers each with a line: how the forked process
ended. A second line before the answer cancels it. The worker opens no uploaded file, and ends with its server.

The forked process confines itself, reads the upload, and writes `progress.json` and then `result.json` into its folder,
with codes and sentences as data. The server does not trust these files; see `upload_worker_client`.
"""

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from glassformer.extensions.uploads.library import upload_folder
from glassformer.extensions.uploads.library.archives import UploadLimits
from glassformer.extensions.uploads.library.upload_folder import Received
from transformer import sandbox
from transformer.errors import GlassformerError
from transformer.extensions import provided
from transformer.i18n import Sentence, in_every_language, in_languages, languages, said, say

MOST_TEXT = 4_000


def sentence(data: Any) -> Sentence:
    """The sentence that data of `in_every_language` are; a plain one for any other data."""
    try:
        found = in_languages(data)
        if all(len(said(found, language)) <= MOST_TEXT for language in languages()):
            return found
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    return say("The files cannot be read.")


RESULT, PROGRESS = "result.json", "progress.json"
MADE, WORK = "made", "work"
LOOK_SECONDS = 0.02
_SUBREAPER = 36

CRASHED = say(
    "The process that read the files stopped unexpectedly, so one of the files is damaged; copy or download it again."
)
TOO_LARGE = say(
    "Reading the files needs more memory than one upload may use; put the files into a folder of checkpoints instead."
)


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
        stopped = lines.next(LOOK_SECONDS) is not None
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


if __name__ == "__main__":
    main()
