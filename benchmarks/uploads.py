"""Many uploads at once: a hundred visitors upload 25 MB each in the same second, while one keeps translating.

    python -m benchmarks.uploads --visitors 100 --megabytes 25

Half upload a checkpoint that opens (the shipped en-fr, widened to that size), a quarter a file of noise, a quarter a
truncated file of torch.save. It reports how each ends, the server's memory meanwhile and afterwards, and how long the
translations of the other visitor take, against the same ones before. Needs Linux.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import torch
from safetensors.torch import load_file, save

from benchmarks.handing_in import Ended, Visitor
from benchmarks.raw_client import RawClient
from tools.serve import ROOT, Server, serve

SHIPPED = ROOT / "checkpoints" / "en-fr"
MEGABYTE = 2**20
LOOK_SECONDS, PAUSE_SECONDS, QUIET_SECONDS = 0.2, 0.3, 35.0
Files = list[tuple[str, bytes]]


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=100)
    parser.add_argument("--megabytes", type=int, default=25)
    options = parser.parse_args()
    uploads = _uploads(options.megabytes * MEGABYTE)
    with tempfile.TemporaryDirectory() as folder:
        inbox = Path(folder) / "tmp"
        inbox.mkdir()
        with serve(log=Path(folder) / "app.log", environment={"TMPDIR": str(inbox)}) as server:
            _report(server, uploads, options.visitors, inbox)
        print(f"left behind when the server has ended: {len(list(inbox.iterdir()))} files and folders")


def _report(server: Server, uploads: Sequence[Files], visitors: int, inbox: Path) -> None:
    with Visitor(server.url) as first:  # the process that reads has started, everything is imported
        first.forget(first.hand_in(uploads[0]).name)
    with _Reader(server.url) as alone:
        time.sleep(20 * PAUSE_SECONDS)
    before = _memory(server.pid)
    began = time.perf_counter()
    with _Reader(server.url) as beside, _Watch(server.pid) as watch, ThreadPoolExecutor(visitors) as pool:
        ended = list(pool.map(lambda number: _one(server.url, uploads[number % len(uploads)]), range(visitors)))
    seconds = time.perf_counter() - began
    time.sleep(QUIET_SECONDS)
    left = [file for file in inbox.glob("glassformer-inbox-*/*/**/*") if file.is_file()]
    print("| how it ended | uploads | seconds, median | seconds, most |\n|---|---|---|---|")
    for how in dict.fromkeys(map(_how, ended)):
        times = [one.seconds for one in ended if _how(one) == how]
        print(f"| {how} | {len(times)} | {statistics.median(times):.1f} | {max(times):.1f} |")
    print(f"\n{len(ended)} of {visitors} ended, in {seconds:.0f} s; the server lives: {server.process.poll() is None}")
    print(f"memory: {before:,} MB before, {watch.most:,} MB at most, {_memory(server.pid):,} MB afterwards")
    print(f"files left in the inbox: {len(left)}")
    print(f"a translation: p50 {alone.at(0.5):.2f} s, p95 {alone.at(0.95):.2f} s alone;")
    print(f"               p50 {beside.at(0.5):.2f} s, p95 {beside.at(0.95):.2f} s beside them, n = {len(beside.took)}")


def _one(url: str, files: Files) -> Ended:
    with Visitor(url) as visitor:
        ended = visitor.hand_in(files)
        if ended.name:
            visitor.forget(ended.name)
        else:
            visitor.empty()
        return ended


def _how(ended: Ended) -> str:
    """What became of an upload, in a word or with the sentence."""
    if ended.name:
        return "opened"
    return re.sub(r"[\d,]{2,}", "…", ended.refused.splitlines()[0])[:90] if ended.refused else "nothing was said"


def _uploads(n_bytes: int) -> list[Files]:
    state = load_file(SHIPPED / "model.safetensors")
    for name in sorted(state, key=lambda one: -state[one].numel()):
        if len(save(state)) < n_bytes:
            state[name] = state[name].float()
    whole = [(file.name, file.read_bytes()) for file in SHIPPED.iterdir() if file.suffix != ".safetensors"]
    saved = io.BytesIO()
    torch.save(state, saved)
    opens: Files = [*whole, ("model.safetensors", save(state))]
    noise: Files = [("noise.safetensors", bytes(8) + os.urandom(n_bytes))]
    return [opens, noise, opens, [("cut.pt", saved.getvalue()[:-1000])]]


class _Reader:
    """A visitor who translates with another seed each time."""

    def __init__(self, url: str) -> None:
        self.took: list[float] = []
        self._url, self._over = url, threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> _Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def at(self, share: float) -> float:
        """The seconds that this share of the translations took at most."""
        return sorted(self.took)[min(int(share * len(self.took)), len(self.took) - 1)]

    def _read(self) -> None:
        with RawClient(self._url) as client:
            seed = int.from_bytes(os.urandom(2), "big")
            while not self._over.wait(PAUSE_SECONDS):
                seed += 1
                query = urlencode({"model": "zh-en", "src": "汤姆有两个孩子。", "how": "sampling", "seed": seed})
                self.took.append(client.rerun(page="step", query=query).seconds)


class _Watch:
    """The most memory that a process has while the block runs."""

    def __init__(self, pid: int) -> None:
        self.most = 0
        self._pid, self._over = pid, threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.most = max(self.most, _memory(self._pid))


def _memory(pid: int) -> int:
    """Megabytes of a process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    main()
