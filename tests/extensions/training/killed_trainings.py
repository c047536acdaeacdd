"""Kill trainings at random and count how often the parameters come out as if nothing had happened, bit by bit.

    python -m benchmarks.durability --kills 60                # 2 processes on the CPU, a tiny model
    python -m benchmarks.durability --kills 20 --processes 4

Three kinds of SIGKILL, in turn: of one process of a training, which the launcher starts again (`--max-restarts`); of
the launcher, after which the same command goes on with `--resume`; and of the first process inside a write, before a
random one of the calls that put a file on the disk, after which the launcher starts it again. The moments are drawn
from `--seed`, over starting, learning, scoring and writing; only kills that hit are counted. Several hit one
training, until it ends; then its parameters, moments, curve and checkpoint are compared with those of one left alone.

POSIX only, as SIGKILL is.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.state import paths

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("rank", "launcher", "write")
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


def killed_in_turn(training: Training, draw: random.Random, done: dict[str, int], most_seconds: float) -> None:
    """One launch: one or two kills of each kind that leaves the launcher, then the launcher's."""
    process = training.start(
        f"--save-minutes={draw.choice((0.0, 0.0, 0.02))}",
        writes=[draw.randint(1, 40) for _ in range(draw.randint(1, 2))],
    )
    for kind in ("rank",) * draw.randint(0, 2) + ("launcher",):
        end = time.monotonic() + draw.uniform(0.0, most_seconds)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(0.02)
        done[kind] += training.kill(process, launcher=kind == "launcher", draw=draw)
    training.end(process)
    done["write"] += sum(note.exists() for note in training.notes)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Kill, compare, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--launches", type=int, default=3, help="of one training, whose launcher is killed")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--most-seconds", type=float, default=12.0, help="from a start or a kill to the next one")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    draw, done, equal = random.Random(options.seed), dict.fromkeys(KINDS, 0), 0
    with tempfile.TemporaryDirectory(prefix="durability-") as folder:
        data = Path(folder)
        write_task("reverse", data, train=300, dev=24, test=2)
        (data / "sitecustomize.py").write_text(KILLER, encoding="ascii")
        whole = Training(data, data / "whole", processes=options.processes, epochs=options.epochs)
        whole.end(whole.start())
        expected, trainings = fingerprint(whole.out), 0
        while sum(done.values()) < options.kills:
            trainings += 1
            killed = Training(data, data / f"killed{trainings}", processes=options.processes, epochs=options.epochs)
            for _ in range(options.launches):
                if not killed.ended:
                    killed_in_turn(killed, draw, done, options.most_seconds)
            if not killed.ended:
                killed.end(killed.start())
            found = fingerprint(killed.out)
            equal += found == expected
            differing = [name for name in expected if found[name] != expected[name]]
            print(f"training {trainings}: {done}, {differing or 'equal'}", flush=True)
    print(f"{sum(done.values())} SIGKILLs {done} of {trainings} trainings in {options.processes} processes: ", end="")
    print(f"{equal} equal to the undisturbed one by SHA-256, {trainings - equal} not")
    if equal < trainings:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
