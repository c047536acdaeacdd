"""A real redis-server on a free port of its own, with its data in a folder; it can be killed and started anew."""

import contextlib
import os
import shutil
import signal
import subprocess
import time

import redis

from tools.serve import HOST, free_port

FIND_SECONDS = 10.0


class RedisServer:
    """The server; `kept` on disk at each change, or not at all."""

    def __init__(self, folder, *, kept=False):
        self.folder, self.kept, self.port, self.process = folder, kept, free_port(), None

    @property
    def url(self):
        return f"redis://{HOST}:{self.port}/0"

    def start(self):
        """Start it and wait until it answers."""
        program = shutil.which("redis-server")
        assert program, "redis-server is not installed; make test installs it"
        kept = ["--appendonly", "yes", "--appendfsync", "always"] if self.kept else ["--appendonly", "no"]
        self.process = subprocess.Popen(
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

    def empty(self):
        """Forget all that it has."""
        with redis.Redis(port=self.port, host=HOST) as asked:
            asked.flushall()

    def stop(self, how=signal.SIGKILL):
        """End it at once."""
        self.process.send_signal(how)
        self.process.wait()

    def pause(self, on=True):
        """Have it answer nothing, and hold all connections; or go on."""
        os.kill(self.process.pid, signal.SIGSTOP if on else signal.SIGCONT)

    def __enter__(self):
        return self.start()

    def __exit__(self, *raised):
        self.pause(False)
        self.stop()
