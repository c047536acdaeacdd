"""A training that waits for its test: it makes about as many snapshots as it may, and is halted there (Linux).

How long a training takes, and how long a page takes to show it, then decides nothing.
"""

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

_INTERRUPTED = 1 << (signal.SIGINT - 1)


class Paced:
    """Halts what trains for a server once it has `may` files of snapshots; an interrupted one ends in any case."""

    def __init__(self, server):
        self.may, self._server, self._over = 0, server, threading.Event()
        self._thread = threading.Thread(target=self._keep_on)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self.may = float("inf")
        self._look()

    def _keep_on(self):
        while not self._over.wait(0.1):
            self._look()

    def _look(self):
        with suppress(OSError, ValueError):  # it has just ended
            for process in _children(self._server.pid):
                folder, status = Path(os.readlink(process / "cwd")), (process / "status").read_text()
                waits = next(line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd"))
                has = len(list(folder.glob("*.snapshots/*")))
                goes_on = has < self.may or int(waits, 16) & _INTERRUPTED
                os.kill(int(process.name), signal.SIGCONT if goes_on else signal.SIGSTOP)


def _children(pid):
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                process = Path("/proc", child)
                if b"training_worker" in (process / "cmdline").read_bytes():
                    yield process
