"""Processes of a training that are killed, or whose launcher is, go on to the parameters of one left alone."""

import json
import os
import random
import signal
import sys
import time
from unittest import mock

import pytest

from glassformer.extensions.training.library.preparation import write_task
from glassformer.extensions.training.library.state import folder_beside, paths
from tests.extensions.training.killed_trainings import KILLER, Training, children, fingerprint
from transformer.__main__ import INTERRUPTED, main

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SIGKILL, and processes that end with their launcher")
INSIDE = 20  # the call before which the first process dies: the second renaming of the state of step 1


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("durability")
    write_task("reverse", folder, train=300, dev=12, test=2)
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


@pytest.fixture
def launched(monkeypatch, capfd):
    """A function that launches a training from this process, and gives the status and what was said."""

    def launch(training, *more, **environment):
        arguments = [*training.command[3:], *more]
        monkeypatch.setattr(sys, "argv", ["transformer", *arguments])
        with mock.patch.dict(os.environ, environment):
            status = main(arguments)
        return status, *capfd.readouterr()

    return launch


def test_the_launcher_starts_again_what_was_killed_in_a_write_and_nothing_that_refuses(data, launched):
    """One process is started again as several are, with fewer imports."""
    note, again = data / f"note-{INSIDE}", Training(data, data / "again", processes=1, epochs=1)
    status, out, _ = launched(again, "--save-minutes=0", KILL_AT=str(note), PYTHONPATH=str(data))
    assert note.exists()
    assert status == 0
    assert out.count("going on after step") == 1
    refused = Training(data, data / "refused", processes=1, epochs=1)
    status, out, error = launched(refused, "--resume")
    assert (status, out) == (2, "")
    assert [line for line in error.splitlines() if line] == [
        f"error: {paths(refused.out)[0]}: there is no training to resume; leave out --resume to start over."
    ]
    assert not refused.out.exists()
    whole = Training(data, data / "alone", processes=1, epochs=1)
    assert main([word for word in whole.command[3:] if not word.startswith(("--processes", "--max-restarts"))]) == 0
    assert fingerprint(again.out) == fingerprint(whole.out)
