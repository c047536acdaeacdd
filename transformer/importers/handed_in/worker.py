"""The process that has everything imported, and forks one that is confined for each upload.

It reads requests from its standard input, a line of JSON each, and answers each with a line: how the forked process
ended. A second line before that means: end it. It opens no file of anybody's, and ends with its server.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer import confined
from transformer.importers.handed_in import child

LOOK_SECONDS = 0.02
_SUBREAPER = 36


def main() -> None:
    """Serve requests until the input ends."""
    confined.die_with_parent()
    _adopt()
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
        child.main(request)
        status = 0
    finally:
        os._exit(status)


def _adopt() -> None:
    """Let what a forked process leaves behind become a child of this one, where it can be ended."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _cleared(how: str) -> str:
    """End whatever is left of a forked process."""
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
    """Lines of the standard input, without waiting for them."""

    def __init__(self) -> None:
        self._rest, self._ended = b"", False

    def next(self, seconds: float | None) -> str | None:
        """The next line; None if there is none after so many seconds, empty when the input has ended."""
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
