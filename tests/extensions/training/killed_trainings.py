"""Trainings that are killed at random moments, with a fingerprint of all that they made.

SIGKILL hits one process of a training, which the launcher starts again (`--max-restarts`); the launcher, after which
the same command goes on with `--resume`; or the first process inside a write, before one of the calls that put a file
on the disk. POSIX only, as SIGKILL is.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from glassformer.extensions.training.library.state import paths
from tests.source_code import ROOT

TINY = (
    "--layers=1", "--d-model=16", "--heads=2", "--d-ff=16", "--shared-vocab", "--src-vocab=40", "--pieces=char",
    "--max-len=20", "--dropout=0.1", "--warmup=5", "--batch-tokens=200", "--precision=fp32", "--device=cpu",
    "--snapshots=6", "--average=2",
)  # fmt: skip

# Put in front of a training: before the n-th call that puts something on the disk, the first process kills itself. It
# notes that in a file, of which the next one that is to be killed has another name.
KILLER = """
import os, signal, sys
notes = [note for note in os.environ.get("KILL_AT", "").split() if not os.path.exists(note)]
calls = [0]
if notes and os.environ.get("RANK") == "0":
    def counted(call):
        def counting(*arguments, **options):
            calls[0] += 1
            if calls[0] == int(notes[0].rpartition("-")[2]):
                open(notes[0], "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        return counting
    os.fsync, os.replace, os.rename = counted(os.fsync), counted(os.replace), counted(os.rename)
"""


class Training:
    """One training that is killed again and again until it ends."""

    def __init__(self, data: Path, out: Path, *, processes: int, epochs: int) -> None:
        files = [f"--train={data / 'train.tsv'}", f"--dev={data / 'dev.tsv'}", f"--out={out}"]
        several = [f"--processes={processes}", "--max-restarts=100"]
        self.command = [sys.executable, "-m", "transformer", "train", *files, *TINY, f"--epochs={epochs}", *several]
        self.out, self.data, self.processes, self.ended = out, data, processes, False

    def start(self, *more: str, writes: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Start its launcher; the first process dies before these calls that write, one after another."""
        there = ["--resume"] if any(path.exists() for path in paths(self.out)) else []
        self.notes = [self.data / f"{self.out.name}-{time.monotonic_ns()}-{call}" for call in writes]
        environment = {"PYTHONPATH": str(self.data), "KILL_AT": " ".join(map(str, self.notes)), "OMP_NUM_THREADS": "1"}
        with (self.data / "log.txt").open("a") as log:
            command, environment = [*self.command, *there, *more], {**os.environ, **environment}
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)

    def kill(self, process: subprocess.Popen[bytes], *, launcher: bool, draw: random.Random) -> bool:
        """Kill one of its processes, or their launcher, as soon as there are any; False if it ended before."""
        while len(ranks := children(process.pid)) < self.processes:
            if process.poll() is not None:
                return False
            time.sleep(0.02)
        if not launcher:
            os.kill(draw.choice(ranks), signal.SIGKILL)
            return True
        process.kill()
        process.wait()
        end = time.monotonic() + 20
        while any(Path(f"/proc/{rank}").exists() for rank in ranks):  # the system ends them with their launcher
            time.sleep(0.02)
            if time.monotonic() > end:
                raise SystemExit("processes outlive their launcher")
        return True

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for its launcher."""
        status = process.wait()
        self.ended = status == 0
        if status not in (0, -signal.SIGKILL):
            raise SystemExit(f"{(self.data / 'log.txt').read_text()[-3000:]}\nthe training ended with status {status}")


def children(pid: int) -> list[int]:
    """The processes that a process started."""
    said = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in said.stdout.splitlines() if "python" in line]


def fingerprint(out: Path) -> dict[str, str]:
    """SHA-256 of all that a training made, but for the time it took."""
    content = paths(out)[0].read_bytes().split(b"\n", 1)[1]
    state = torch.load(io.BytesIO(content), weights_only=True)
    tensors = {f"model {name}": tensor for name, tensor in state["model"].items()}
    for i, moments in state["optimizer"].items():
        tensors |= {f"moment {i} {name}": tensor for name, tensor in moments.items()}
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].numpy().tobytes())
    with (out / "training.csv").open(encoding="utf-8", newline="") as file:
        rows = [{name: cell for name, cell in row.items() if name != "seconds"} for row in csv.DictReader(file)]
    weights = hashlib.sha256((out / "model.safetensors").read_bytes())
    return {
        "parameters and moments": digest.hexdigest(),
        "checkpoint": weights.hexdigest(),
        "curve": hashlib.sha256(repr(rows).encode()).hexdigest(),
        "snapshots": ", ".join(sorted(path.name for path in out.with_name(out.name + ".snapshots").iterdir())),
    }
