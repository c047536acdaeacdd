"""Processes of a training that are killed, or whose launcher is, go on to the parameters of one left alone."""

import json
import os
import random
import signal
import sys
import time
from unittest import mock

import pytest

from benchmarks.durability import KILLER, Training, children, fingerprint
from glassformer.extensions.training.library.state import folder_beside, paths
from glassformer.extensions.training.library.tasks import write_reverse
from transformer.__main__ import INTERRUPTED, main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL, and processes that end with their launcher")
INSIDE = 20  # the call before which the first process dies: the second renaming of the state of step 1


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("durability")
    write_reverse(folder, train=300, dev=12, test=2)
    (folder / "sitecustomize.py").write_text(KILLER, encoding="ascii")
    return folder


def reached(training, step, process):
    """Wait until a training has done so many steps; it has not ended by then."""
    path = folder_beside(training.out) / "progress.json"
    for _ in range(6_000):
        if path.exists() and json.loads(path.read_text())["step"] >= step and len(children(process.pid)) == 2:
            return
        assert process.poll() is None, "it ended before it was killed"
        time.sleep(0.02)
    pytest.fail("it stands still")


@pytest.mark.deep
def test_a_training_that_was_killed_everywhere_makes_the_same_parameters(data):
    whole, killed = (Training(data, data / name, processes=2, epochs=8) for name in ("whole", "killed"))
    whole.end(whole.start())
    process = killed.start("--save-minutes=0", writes=[INSIDE])
    try:
        reached(killed, 20, process)
        assert killed.notes[0].exists()  # it was killed in a write, and started again by the launcher
        assert killed.kill(process, launcher=False, draw=random.Random(0))
        reached(killed, 40, process)
        assert killed.kill(process, launcher=True, draw=random.Random(0))
        process = killed.start("--save-minutes=0")
        reached(killed, 60, process)
        process.send_signal(signal.SIGINT)  # as Ctrl-C does
        assert process.wait(60) == INTERRUPTED
    finally:
        process.kill()
    killed.end(killed.start())
    assert killed.ended
    assert fingerprint(killed.out) == fingerprint(whole.out)
    said = (data / "log.txt").read_text()
    assert said.count("going on after step") == 4
    assert said.count("interrupted. ") == 1
    assert "Traceback" not in said


def test_the_launcher_starts_again_what_was_killed_in_a_write(data):
    (data / "log.txt").unlink(missing_ok=True)
    killed = Training(data, data / "again", processes=1, epochs=1)  # one restarts as several do, with fewer imports
    killed.end(killed.start("--save-minutes=0", writes=[INSIDE]))
    assert killed.notes[0].exists()
    assert killed.ended
    assert (data / "log.txt").read_text().count("going on after step") == 1


def test_the_launcher_does_not_start_again_what_refuses(data, monkeypatch, capfd):
    refused = Training(data, data / "refused", processes=1, epochs=1)
    arguments = [*refused.command[3:], "--resume"]
    monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
    with mock.patch.dict(os.environ):
        assert main(arguments) == 2
    said = capfd.readouterr()
    lines = [line for line in said.err.splitlines() if line]
    assert lines == [
        f"error: {paths(refused.out)[0]}: there is no training to resume; leave out --resume to start over."
    ]
    assert said.out == ""
    assert not refused.out.exists()
