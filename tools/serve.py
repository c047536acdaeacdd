"""Start a Streamlit app on a free port, wait until it answers, and always stop it again.

Shared by the browser tests and the benchmarks. A server runs in its own process, as a user would start it
(`streamlit run app.py`), so that start-up, deep links and logs are the real ones.

What it does not know: whether the app's first script run succeeded; health only says that the server listens.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
START_SECONDS = 90.0
STOP_SECONDS = 10.0


@dataclass(frozen=True)
class Server:
    """A running app: where it is, what it wrote, which process it is."""

    url: str
    port: int
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Process id of the server (Streamlit serves and runs scripts in one process)."""
        return self.process.pid

    def log_text(self) -> str:
        """Everything the server has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")


class ServerFailedError(RuntimeError):
    """The app did not become healthy; the message holds the end of its log."""


@contextlib.contextmanager
def serve(
    script: Path | str = "app.py",
    *,
    log: Path,
    options: Sequence[str] = (),
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    folder: Path = ROOT,
) -> Iterator[Server]:
    """Run `streamlit run script` until the block ends.

    Args:
        script: the app, relative to the repository root or absolute.
        log: file that receives stdout and stderr of the server.
        options: options for Streamlit, such as `--runner.postScriptGC=true`.
        arguments: arguments for the app itself.
        environment: variables added to (or replacing) those of this process.
        port: where it listens; a free one if not given.
        folder: where it runs: `.streamlit/config.toml` is looked for there, and modules are imported from there.

    Raises:
        ServerFailedError: if it ended, or did not answer, within START_SECONDS.
    """
    port = free_port() if port is None else port
    named = {**({} if folder == ROOT else {"PYTHONPATH": str(folder)}), **(environment or {})}
    server = _start(script, folder, log=log, port=port, options=options, arguments=arguments, environment=named)
    try:
        wait_until_healthy(server)
        yield server
    finally:
        _stop(server.process)


def free_port() -> int:
    """Return a port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def wait_until_healthy(server: Server, *, seconds: float = START_SECONDS) -> None:
    """Return once the server answers its health check; raise ServerFailedError if it does not in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            raise ServerFailedError(f"The app ended with code {server.process.returncode}.\n{_tail(server)}")
        if _answers(server.url):
            return
        time.sleep(0.05)
    raise ServerFailedError(f"The app did not answer within {seconds:.0f} s.\n{_tail(server)}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, reset, timed out, or an HTTP error: not yet
        return False


def _start(
    script: Path | str,
    folder: Path,
    *,
    log: Path,
    port: int,
    options: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> Server:
    command = [sys.executable, "-m", "streamlit", "run", str(script)]
    command += [f"--server.port={port}", "--server.headless=true", *options]
    command += ["--", *arguments] if arguments else []
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that _stop reaches whatever the server started
        )
    return Server(url=f"http://{HOST}:{port}", port=port, log=log, process=process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server's whole process group: politely, then not."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
            return


def _tail(server: Server, *, lines: int = 30) -> str:
    """Return the end of the server's log."""
    return "\n".join(server.log_text().splitlines()[-lines:])
