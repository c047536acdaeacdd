"""Upload worker: a preloaded process that forks a sandboxed child per upload; its error sentences as JSON.

It reads requests from its standard input, one line of JSON each, and answers each with a line: how the forked process
ended. A second line before the answer cancels it. The worker opens no uploaded file, and ends with its server.

The forked process confines itself, reads the upload, and writes `progress.json` and then `result.json` into its folder,
with codes and sentences as data. The server does not trust these files; see `upload_worker_client`.
"""

import contextlib
import json
import math
import os
import re
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
from transformer.i18n import Sentence, say
from transformer.i18n.sentence import Joined, Template

MOST_TEXT = 4_000
MOST_DEPTH = 8
_FIELDS = re.compile(r"\{([^{}]*)\}")
_FIELD = re.compile(r"[A-Za-z_]\w{0,40}(:[<>#0]{0,2}\d?,?(\.\d)?[A-Za-z%]?)?")


def as_data(value: object) -> Any:
    """A sentence, or a value in one, as what JSON knows; of no error is it said what a word of it is `about`."""
    if isinstance(value, Template):
        english, plural, _, values = value.made_of
        return {"say": [english, plural], "values": {name: as_data(one) for name, one in values.items()}}
    if isinstance(value, Joined):
        separator, parts = value.made_of
        return {"joined": separator, "parts": [as_data(part) for part in parts]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}  # JSON has none such
    return value if isinstance(value, bool | int | float) or value is None else str(value)


def sentence(data: Any) -> Sentence:
    """The sentence that was given to `as_data`; a plain one for any other data."""
    try:
        found = _value(data, 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        found = None
    if isinstance(found, Sentence) and len(found) <= MOST_TEXT:
        return found
    return say("The files cannot be read.")


def _value(data: Any, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise ValueError("too deep")
    if isinstance(data, dict) and "number" in data:
        return float(data["number"])
    if isinstance(data, dict) and "joined" in data:
        parts = [_value(part, depth + 1) for part in data["parts"]]
        return Joined(str(data["joined"])[:10], tuple(part if isinstance(part, str) else str(part) for part in parts))
    if isinstance(data, dict):
        english, plural = data["say"]
        for text in filter(None, (english, plural)):
            _check(text)
        values = {str(name): _value(one, depth + 1) for name, one in data["values"].items()}
        return Template(english, plural, "", values)
    if isinstance(data, str) and len(data) > MOST_TEXT:
        raise ValueError("too long")
    return data


def _check(template: object) -> None:
    if not isinstance(template, str) or len(template) > MOST_TEXT:
        raise ValueError("no template")
    for field in _FIELDS.findall(template.replace("{{", "").replace("}}", "")):
        if not _FIELD.fullmatch(field):
            raise ValueError("no field of ours")


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
        return {"refused": as_data(error.sentence)}
    except MemoryError:
        return {"refused": as_data(TOO_LARGE)}
    except RuntimeError as error:  # how torch says it
        if "memory" not in str(error):
            raise
        return {"refused": as_data(TOO_LARGE)}


def _write(path: Path, record: Mapping[str, Any]) -> None:
    """Write atomically, because another process may be reading."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(record), encoding="ascii")
    new.replace(path)


def main() -> None:
    """Serve requests until the input ends."""
    sandbox.die_with_parent()
    _adopt()
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
