"""Processes of a training that are killed, or whose launcher is, go on to the parameters of one left alone."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.state import folder_beside, paths
from tests.extensions.training.library.training_jobs import stored
from tests.source_code import ROOT
from transformer.__main__ import INTERRUPTED, main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL, and processes that end with their launcher")
TINY = (
    "--layers=1 --d-model=16 --heads=2 --d-ff=16 --shared-vocab --src-vocab=40 --pieces=char --max-len=20 --dropout=0.1"
    " --warmup=5 --batch-tokens=200 --precision=fp32 --device=cpu --snapshots=6 --average=2"
)
INSIDE = 20  # the call before which the first process dies: the second renaming of the state of step 1

# Put in front of a training: before that call of those that put something on the disk, the first process kills itself,
# once: a file notes it.
KILLER = f"""
import os, signal
note, calls = os.environ.get("KILL_AT"), [0]
if note and os.environ.get("RANK") == "0" and not os.path.exists(note):
    def counted(call):
        def counting(*arguments, **options):
            calls[0] += 1
            if calls[0] == {INSIDE}:
                open(note, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        return counting
    os.fsync, os.replace, os.rename = counted(os.fsync), counted(os.replace), counted(os.rename)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("durability")
    write_task("reverse", folder, train=100, dev=6, test=2)
    (folder / "sitecustomize.py").write_text(KILLER, encoding="ascii")
    return folder


def words(data, name, *more, epochs=1):
    files = [f"--train={data / 'train.tsv'}", f"--dev={data / 'dev.tsv'}", f"--out={data / name}"]
    return ["train", *files, *TINY.split(), f"--epochs={epochs}", *more]


def children(pid):
    """The processes that a process started."""
    said = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in said.stdout.splitlines() if "python" in line]


def fingerprint(out):
    """All that a training made, but for the time it took."""
    state = stored(out)
    tensors = [state["model"], *state["optimizer"].values()]
    with (out / "training.csv").open(encoding="utf-8", newline="") as file:
        rows = [row | {"seconds": ""} for row in csv.DictReader(file)]
    snapshots = sorted(path.name for path in out.with_name(f"{out.name}.snapshots").iterdir())
    numbers = [{name: tensor.numpy().tobytes() for name, tensor in some.items()} for some in tensors]
    return numbers, (out / "model.safetensors").read_bytes(), rows, snapshots


def start(data, name, *more):
    """Start two processes and their launcher."""
    command = [sys.executable, "-m", "transformer", *words(data, name, *more, epochs=24), "--processes=2"]
    environment = {"PYTHONPATH": str(data), "KILL_AT": str(data / f"{name}.note"), "OMP_NUM_THREADS": "1"}
    with (data / "log.txt").open("a") as log:
        command, environment = [*command, "--max-restarts=100"], {**os.environ, **environment}
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def reached(out, step, process):
    """The processes of a training that has done so many steps; it has not ended by then."""
    path = folder_beside(out) / "progress.json"
    for _ in range(6_000):
        if path.exists() and json.loads(path.read_text())["step"] >= step and len(children(process.pid)) == 2:
            return children(process.pid)
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    pytest.fail("it stands still")


@pytest.mark.deep
def test_a_training_that_was_killed_everywhere_makes_the_same_parameters(data):
    out, log = data / "killed", data / "log.txt"
    (data / "whole.note").touch()  # nobody kills this one
    assert start(data, "whole").wait() == 0, log.read_text()[-3000:]
    process = start(data, "killed", "--save-minutes=0")
    try:
        ranks = reached(out, 20, process)
        assert (data / "killed.note").exists()  # it was killed in a write, and started again by the launcher
        os.kill(ranks[1], signal.SIGKILL)
        ranks = reached(out, 40, process)
        process.kill()
        process.wait()
        for _ in range(1_000):  # the system ends them with their launcher
            time.sleep(0.02)
            if not (left := [rank for rank in ranks if Path(f"/proc/{rank}").exists()]):
                break
        assert not left
        process = start(data, "killed", "--save-minutes=0", "--resume")
        reached(out, 60, process)
        process.send_signal(signal.SIGINT)  # as Ctrl-C does
        assert process.wait(60) == INTERRUPTED
    finally:
        process.kill()
    assert start(data, "killed", "--resume").wait() == 0, log.read_text()[-3000:]
    assert fingerprint(out) == fingerprint(data / "whole")
    said = log.read_text()
    assert said.count("going on after step") == 4
    assert said.count("interrupted. ") == 1
    assert "Traceback" not in said


@pytest.fixture
def launched(monkeypatch, capfd):
    """A function that launches a training from this process, and gives the status and what was said."""

    def launch(arguments, **environment):
        monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
        with mock.patch.dict(os.environ, environment):
            status = main(arguments)
        return status, *capfd.readouterr()

    return launch


def test_the_launcher_starts_again_what_was_killed_in_a_write_and_nothing_that_refuses(data, launched):
    """One process is started again as several are, with fewer imports."""
    note, one = data / "again.note", ("--processes=1", "--max-restarts=100")
    arguments = words(data, "again", *one, "--save-minutes=0")
    status, out, _ = launched(arguments, KILL_AT=str(note), PYTHONPATH=str(data))
    assert note.exists()
    assert status == 0
    assert out.count("going on after step") == 1
    status, out, error = launched(words(data, "refused", *one, "--resume"))
    assert (status, out) == (2, "")
    assert [line for line in error.splitlines() if line] == [
        f"error: {paths(data / 'refused')[0]}: there is no training to resume; leave out --resume to start over."
    ]
    assert not (data / "refused").exists()
    assert main(words(data, "alone")) == 0
    assert fingerprint(data / "again") == fingerprint(data / "alone")
