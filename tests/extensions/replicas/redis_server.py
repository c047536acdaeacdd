"""A real redis-server on a free port of its own, with its data in a folder; it can be killed and started anew."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Self

import redis

from tools.programs import find
from tools.serve import HOST, free_port

FIND_SECONDS = 10.0


class RedisServer:
    """The server; `kept` on disk at each change, or not at all."""

    def __init__(self, folder: Path, *, kept: bool = False) -> None:
        self.folder, self.kept, self.port = folder, kept, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address, as `GLASSFORMER_STORE` has it."""
        return f"redis://{HOST}:{self.port}/0"

    @property
    def pid(self) -> int:
        """The process that runs."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it and wait until it answers."""
        program = find("redis-server")
        assert program, "redis-server is not installed; `make test` installs it where it may"
        kept = ["--appendonly", "yes", "--appendfsync", "always"] if self.kept else ["--appendonly", "no"]
        self._process = subprocess.Popen(
            [program, "--port", str(self.port), "--bind", HOST, "--dir", str(self.folder), "--save", "", *kept],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + FIND_SECONDS
        with redis.Redis(port=self.port, host=HOST) as asked:
            while True:
                with contextlib.suppress(redis.RedisError):
                    if asked.ping():
                        return self
                assert time.monotonic() < end, "redis-server does not answer"
                time.sleep(0.02)

    def empty(self) -> None:
        """Forget all that it has."""
        with redis.Redis(port=self.port, host=HOST) as asked:
            asked.flushall()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End it at once."""
        os.kill(self.pid, how)
        if self._process is not None:
            self._process.wait()

    def pause(self, on: bool = True) -> None:
        """Have it answer nothing, and hold all connections; or go on."""
        os.kill(self.pid, signal.SIGSTOP if on else signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *raised: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.pause(False)
            self.stop()
