"""A real redis-server on a free port of its own, with its data in a folder; it can be killed and started anew."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from pathlib import Path
from typing import Self

import redis

from tests.glassformer.waiting import until
from tools.programs import find
from tools.serve import HOST, free_port


class RedisServer:
    """The server; `kept` on disk at each change, or not at all."""

    def __init__(self, folder: Path, *, kept: bool = False) -> None:
        self.folder, self.kept, self.port = folder, kept, free_port()
        self.url = f"redis://{HOST}:{self.port}/0"  # as `GLASSFORMER_STORE` has it

    def start(self) -> Self:
        """Start it and wait until it answers."""
        program = find("redis-server")
        assert program, "redis-server is not installed; `make test` installs it where it may"
        kept = ["--appendonly", "yes", "--appendfsync", "always"] if self.kept else ["--appendonly", "no"]
        at = ["--port", str(self.port), "--bind", HOST, "--dir", str(self.folder), "--save", ""]
        self._process = subprocess.Popen([program, *at, *kept], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self._answers)
        return self

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError), redis.Redis(port=self.port, host=HOST) as asked:
            return bool(asked.ping())
        return False

    def empty(self) -> None:
        """Forget all that it has."""
        with redis.Redis(port=self.port, host=HOST) as asked:
            asked.flushall()

    def stop(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def pause(self, on: bool = True) -> None:
        """Have it answer nothing, and hold all connections; or go on."""
        self._process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        self.stop()
