"""Kill trainings at random and count how often the parameters come out as if nothing had happened, bit by bit.

    python -m benchmarks.durability --kills 60                # 2 processes on the CPU, a tiny model
    python -m benchmarks.durability --kills 20 --processes 4

Three kinds of SIGKILL, in turn: of one process of a training, which the launcher starts again (`--max-restarts`); of
the launcher, after which the same command goes on with `--resume`; and of the first process inside a write, before a
random one of the calls that put a file on the disk, after which the launcher starts it again. The moments are drawn
from `--seed`, over starting, learning, scoring and writing; only kills that hit are counted. Several hit one training;
then its parameters, its moments, its curve and its checkpoint are compared with those of an undisturbed training.

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

from transformer.training.state import paths
from transformer.training.tasks import write_reverse

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("rank", "launcher", "write")
TINY = (
    "--layers=1", "--d-model=16", "--heads=2", "--d-ff=16", "--shared-vocab", "--src-vocab=40", "--pieces=char",
    "--max-len=20", "--dropout=0.1", "--warmup=5", "--batch-tokens=200", "--precision=fp32", "--device=cpu",
    "--snapshots=6", "--average=2",
)  # fmt: skip

# Put in front of a training: before the n-th call that puts something on the disk, the first process kills itself.
KILLER = """
import os, signal, sys
here, calls = os.environ.get("KILL_AT"), [0]
if here and os.environ.get("RANK", "0") == "0" and not os.path.exists(here):
    def counted(call):
        def counting(*arguments, **options):
            calls[0] += 1
            if calls[0] == int(os.environ["KILL_CALL"]):
                open(here, "w").close()
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
        self.out, self.data, self.begun, self.ended = out, data, False, False

    def run(self, kill: str | None, draw: random.Random, most_seconds: float) -> bool:
        """Run until it ends or the launcher is killed; whether a process was killed."""
        environment, note = {**os.environ, "OMP_NUM_THREADS": "1"}, self.data / f"killed-{draw.random()}"
        if kill == "write":
            environment |= {"PYTHONPATH": str(self.data), "KILL_AT": str(note), "KILL_CALL": str(draw.randint(1, 60))}
        more = [f"--save-minutes={draw.choice((0.0, 0.0, 0.02))}", *(["--resume"] if self.begun else [])]
        with (self.data / "log.txt").open("a") as log:
            process = subprocess.Popen([*self.command, *more], cwd=ROOT, env=environment, stdout=log, stderr=log)
        hit = kill in ("rank", "launcher") and self._kill(
            process, kill, time.monotonic() + draw.uniform(0.0, most_seconds), draw
        )
        status = process.wait()
        self.begun, self.ended = any(path.exists() for path in paths(self.out)), status == 0
        if status not in (0, -signal.SIGKILL):
            print((self.data / "log.txt").read_text()[-3000:])
            raise SystemExit(f"the training ended with status {status}")
        return hit or note.exists()

    def _kill(self, process: subprocess.Popen[bytes], kind: str, when: float, draw: random.Random) -> bool:
        while time.monotonic() < when or (kind == "rank" and not children(process.pid)):
            if process.poll() is not None:
                return False
            time.sleep(0.02)
        ranks = children(process.pid)
        victim = process.pid if kind == "launcher" or not ranks else draw.choice(ranks)
        os.kill(victim, signal.SIGKILL)
        if victim == process.pid:
            process.wait()
            while any(Path(f"/proc/{rank}").exists() for rank in ranks):  # the system ends them with their launcher
                time.sleep(0.02)
        return True


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
    parser.add_argument("--a-training", type=int, default=6, help="kills that hit one training")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--most-seconds", type=float, default=15.0, help="until a kill, from a start")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    draw, done, equal = random.Random(options.seed), dict.fromkeys(KINDS, 0), 0
    with tempfile.TemporaryDirectory(prefix="durability-") as folder:
        data = Path(folder)
        write_reverse(data, train=300, dev=24, test=2)
        (data / "sitecustomize.py").write_text(KILLER, encoding="ascii")
        whole = Training(data, data / "whole", processes=options.processes, epochs=options.epochs)
        whole.run(None, draw, 0.0)
        expected, trainings = fingerprint(whole.out), 0
        while sum(done.values()) < options.kills:
            trainings += 1
            killed = Training(data, data / f"killed{trainings}", processes=options.processes, epochs=options.epochs)
            left = min(options.a_training, options.kills - sum(done.values()))
            while not killed.ended:
                kind = KINDS[sum(done.values()) % len(KINDS)] if left else None
                hit = killed.run(kind, draw, options.most_seconds)
                left -= hit
                if kind and hit:
                    done[kind] += 1
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
