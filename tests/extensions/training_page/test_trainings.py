"""Trainings of visitors run one at a time, stop, go on, fail in a sentence, and leave nothing after the server."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from glassformer.extensions.training.library.state import folder_beside, has_state
from glassformer.extensions.training_page import training_worker
from glassformer.extensions.training_page import trainings as module
from glassformer.extensions.training_page.trainings import KEPT_SECONDS, MOST_WAITING, Plan, Training, Trainings
from glassformer.server.model_runner import BusyError
from tests.extensions.training.library.test_durability import children
from tests.glassformer.waiting import WAIT, until
from transformer import sandbox
from transformer.__main__ import INTERRUPTED
from transformer.checkpoint.load import load

FAKE = "tests.extensions.training_page.fake_training"
ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "FULL_SECONDS", 0.05)


@pytest.fixture
def make(tmp_path):
    """A function that makes the trainings of a server, whose processes are not the real ones."""
    made = []

    def one(**options):
        made.append(Trainings(tmp_path, **{"child": FAKE} | options))
        return made[-1]

    yield one
    for each in made:
        each.close()


def plan(*words, minutes=5.0, **more):
    return Plan(name="model", commands=(words,), minutes=minutes, **more)


def ended(trainings, training):
    return until(lambda: None if (seen := trainings.look(training)).is_under_way else seen)


def learning(trainings, training):
    """Once it has learned something."""
    until(lambda: training.progress().step > 3)
    return int((training.folder / "pid").read_text())


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_several_models_are_trained_in_turn_within_one_limit_and_go_on_where_they_were_stopped(make):
    trainings = make()
    commands = [("task",), *(("train", "--out", name) for name in ("a-short", "a-long", "a-last")), ("done",)]
    training = trainings.begin(Plan(name="a-last", commands=tuple(commands), minutes=5.0))
    assert list(training.outs) == ["a-short", "a-long", "a-last"]
    until(lambda: training.now.name == "a-long" and training.progress().step > 3)
    assert not training.has_model
    trainings.cancel(training)
    until(lambda: not trainings.look(training).is_under_way)
    first = training.points["a-short"]
    assert first[-1][0] <= 30
    trainings.resume(training, minutes=3.0)
    until(lambda: (training.folder / "words").read_text().endswith("train --out a-long --resume"))
    until(lambda: len(training.points["a-long"]) > 5)
    assert training.points["a-short"] == first  # it was not trained again
    assert training.plan.commands == tuple(commands)
    assert [step for step, _ in training.points["a-long"]] == sorted({step for step, _ in training.points["a-long"]})

    late = make(late=0.0)
    short = tuple(("train", "--out", f"{n}-short") for n in range(9))
    seen = ended(late, begun := late.begin(Plan(name="8-short", commands=short, minutes=1 / 60)))
    assert "took much longer than it may" in str(seen.problem)
    assert not begun.has_model  # the limit is of all together


def test_it_is_watched_to_its_end(make):
    trainings = make()
    training = trainings.begin(plan("done", files={"train.tsv": b"a\tb\n"}))
    assert (training.folder / "train.tsv").read_bytes() == b"a\tb\n"
    assert stat.S_IMODE(training.folder.stat().st_mode) == 0o700
    assert ended(trainings, training).state == "done"
    assert training.progress().step == 1000
    assert training.points == {"model": [(1000, 1 / 1001)]}
    assert trainings.find(training.token) is training
    assert trainings.seconds_left() is None


FAILURES = {"crash": "stopped unexpectedly", "killed": "needed more memory than it may have"}
FAILURES["wrong"] = "could not go on: train.tsv, line 3: nothing there."


@pytest.mark.parametrize("word", FAILURES)
def test_what_fails_in_its_last_command_is_one_sentence_and_the_next_one_begins(make, word):
    trainings = make()
    failing = Plan(name="model", commands=(("done",), (word,)), minutes=5)
    first, second = trainings.begin(failing), trainings.begin(plan("done"))
    seen = ended(trainings, first)
    assert (first.folder / "words").read_text().split()[1:] == [word]
    assert seen.state == "failed"
    assert FAILURES[word] in str(seen.problem)
    assert ended(trainings, second).state == "done"
    trainings.resume(first)  # it left no state, so it begins once more
    until(lambda: first.times == 2 and not trainings.look(first).is_under_way)
    assert "--resume" not in (first.folder / "words").read_text()


def test_one_runs_the_others_wait_their_turn_and_too_many_are_refused(make):
    trainings = make()
    first, second, third = (trainings.begin(plan(word)) for word in ("learn", "learn", "done"))
    learning(trainings, first)
    assert [trainings.before(one) for one in (second, third)] == [1, 2]
    ran, left = trainings.seconds_left()
    assert 0 < ran < WAIT < left <= 300 + module.LATE_SECONDS
    trainings.cancel(second)  # whoever waits may leave
    trainings.cancel(first)
    assert ended(trainings, third).state == "done"
    assert not (second.folder / "pid").exists()
    for _ in range(MOST_WAITING):
        trainings.begin(plan("learn"))
    with pytest.raises(BusyError, match=f"{MOST_WAITING} trainings are waiting or running"):
        trainings.begin(plan("learn"))
    assert len([path for path in trainings.root.iterdir() if path.is_dir()]) == MOST_WAITING + 3


def test_a_stopped_one_goes_on_from_its_state(make):
    trainings = make()
    training = trainings.begin(plan("learn", "--max-minutes", "5"))
    pid = learning(trainings, training)
    trainings.cancel(training)
    assert trainings.look(training).state == "cancelled"
    until(lambda: not is_alive(pid))
    stood = training.progress().step
    assert has_state(training.now)
    trainings.resume(training, minutes=20)
    trainings.resume(training)  # it is under way
    until(lambda: training.progress().step > stood)
    assert (training.folder / "words").read_text().split()[2:] == ["--max-minutes", "10", "--resume"]
    steps = [step for step, _ in training.points["model"]]
    assert steps == sorted(set(steps))


def test_one_that_hears_nothing_takes_too_long_or_writes_too_much_is_ended(make, monkeypatch):
    late = make(late=0.3)
    assert "took much longer than it may" in str(ended(late, late.begin(plan("learn", minutes=0.0))).problem)
    full = make(most_bytes=1_000_000)
    assert "wrote more than 1,000,000 bytes" in str(ended(full, full.begin(plan("write"))).problem)
    monkeypatch.setattr(module, "STOP_SECONDS", 0.1)
    training = full.begin(plan("deaf"))
    until(lambda: training.progress().step)
    full.cancel(training)
    pid = int((training.folder / "pid").read_text())
    until(lambda: not is_alive(pid))


def test_what_is_due_is_done_in_time_or_at_the_end(make):
    trainings, done = make(), []
    training = trainings.begin(plan("learn"))
    learning(trainings, training)
    trainings.when(training, 0.0, lambda: done.append("now"))
    trainings.when(training, 0.0, lambda: 1 / 0)  # which harms nobody
    trainings.when(training, 1000.0, lambda: done.append("end"))
    until(lambda: done == ["now"])
    trainings.cancel(training)
    until(lambda: done == ["now", "end"])
    trainings.when(training, 1000.0, lambda: done.append("late"))
    until(lambda: done[-1] == "late")


def test_a_forgotten_one_leaves_nothing_nor_does_a_server_that_ends(make):
    trainings = make()
    running = trainings.begin(plan("learn"))
    pid = learning(trainings, running)
    trainings.forget(running)
    assert trainings.find(running.token) is None
    until(lambda: not is_alive(pid) and not running.folder.exists())
    over = trainings.begin(plan("done"))
    ended(trainings, over)
    trainings.forget(over)
    assert not over.folder.exists()
    pid = learning(trainings, trainings.begin(plan("learn")))
    trainings.close()
    assert not is_alive(pid)
    assert not trainings.root.exists()


def age(folder):
    """Nobody has looked at it for long."""
    os.utime(folder, times=(time.time() - KEPT_SECONDS - 1,) * 2)


def test_what_nobody_looks_at_is_removed_and_the_number_is_bounded(make, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    trainings = make()
    old = trainings.begin(plan("done"))
    ended(trainings, old)
    age(old.folder)
    running = trainings.begin(plan("learn"))
    assert trainings.find(old.token) is None
    age(running.folder)
    trainings.sweep()
    assert trainings.find(running.token) is running  # it is not over
    trainings.cancel(running)
    for _ in range(3):
        ended(trainings, trainings.begin(plan("done")))
    assert trainings.find(running.token) is None
    assert len([path for path in trainings.root.iterdir() if path.is_dir()]) == 3


def reverse(epochs=1):
    words = "train --train train.tsv --dev dev.tsv --out model --layers 1 --d-model 16 --heads 1 --d-ff 16 --pieces"
    words += f" char --shared-vocab --src-vocab 64 --max-len 13 --batch-tokens 50 --epochs {epochs}"
    rows = "".join(f"{word}\t{word[::-1]}\n" for word in ("ab", "cd", "abc", "bcd", "dab", "cab", "bad", "dcb"))
    files = {"train.tsv": rows.encode(), "dev.tsv": b"ba\tab\n"}
    return Plan(name="model", commands=(tuple(words.split()),), files=files, minutes=1.0)


SERVER = f"""
import sys, time
from pathlib import Path
from glassformer.extensions.training_page.trainings import Plan, Trainings
trainings = Trainings(shared=Path(sys.argv[1]))
training = trainings.begin({reverse(epochs=1_000)})
print(training.folder, flush=True)
time.sleep(600)
"""


def test_no_process_outlives_a_killed_server_and_another_replica_goes_on_with_its_training(tmp_path, make):
    """The real process, and the server's end that nobody can prepare for; the lock goes with the process that held it.

    That the next server removes what a killed one left is in `test_upload_store`.
    """
    shared = tmp_path / "shared"
    shared.mkdir()
    command, environment = [sys.executable, "-c", SERVER, str(shared)], os.environ | {"HOME": "/"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as server:
        try:
            folder = Path(server.stdout.readline().decode().strip())
            trainings = make(shared=shared)
            training = trainings.find(folder.name)
            until(lambda: folder_beside(training.now).is_dir())  # it learns
            assert trainings.look(training).state == "running"
            [child] = children(server.pid)
            assert os.getpriority(os.PRIO_PROCESS, child) == min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
            assert Path(f"/proc/{child}/status").read_text().count("Threads:\t") == 1
        finally:
            server.kill()
    until(lambda: not is_alive(child))
    assert ended(trainings, training).state == "cancelled"
    trainings.resume(training)
    assert trainings.look(training).is_under_way


def test_bytes_are_counted_while_folders_are_renamed_and_removed(tmp_path):
    (tmp_path / "kept").write_bytes(bytes(100))
    stop = threading.Event()

    def save():
        while not stop.is_set():
            (tmp_path / ".model.saving" / "deeper").mkdir(parents=True)
            (tmp_path / ".model.saving").rename(tmp_path / "model")
            shutil.rmtree(tmp_path / "model")

    thread = threading.Thread(target=save)
    thread.start()
    try:
        assert {sandbox.bytes_below(tmp_path) for _ in range(500)} == {100}
    finally:
        stop.set()
        thread.join()
    assert sandbox.bytes_below(tmp_path / "gone") == 0


def test_a_real_one_makes_a_checkpoint_and_writes_nowhere_else_or_says_that_it_lacks_memory(make, tmp_path):
    trainings = make(child=training_worker.__name__)
    training, outside = trainings.begin(reverse()), tmp_path / "outside"
    elsewhere = trainings.begin(plan("task", "reverse", "--out", str(outside)))
    assert ended(trainings, training).state == "done", (training.folder / "log.txt").read_text()
    assert load(training.out).card.training["command"].startswith("python -m transformer train --train train.tsv")
    assert has_state(training.now)
    assert ended(trainings, elsewhere).state == "failed"
    assert not outside.exists()
    small = make(child=training_worker.__name__, memory=20 * 2**20)
    said = str(ended(small, small.begin(reverse())).problem)
    assert said.startswith("The training needed more memory than it may have (20 MB)."), said


def test_a_stop_is_heard_while_a_real_one_starts(make, tmp_path):
    """Where signals are ignored, too, as they are of a server in the background of a shell."""
    training = Training("x", reverse(), tmp_path)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = make(child=training_worker.__name__)._process(training, training.plan.commands[-1])
    finally:
        signal.signal(signal.SIGINT, before)
    assert module._stopped(process) in (INTERRUPTED, -signal.SIGINT)
    sandbox.end(process)


def test_points_stay_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 10)
    training = Training("x", plan("learn"), tmp_path)
    folder_beside(training.now).mkdir()
    for step in range(60):
        record = vars(module.TrainingProgress()) | {"step": step // 2}  # none twice
        (folder_beside(training.now) / "progress.json").write_text(json.dumps(record))
        training.note()
        assert len(training.points["model"]) <= 10
    steps = [step for step, _ in training.points["model"]]
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (1, 29)


@pytest.fixture
def beside(make, tmp_path):
    """Two replicas that share a folder."""
    (tmp_path / "shared").mkdir()
    return [make(shared=tmp_path / "shared") for _ in range(2)]


def test_another_replica_shows_a_training_and_stops_it(beside):
    one, other = beside
    training = one.begin(plan("learn", "--max-minutes", "5"))
    pid = learning(one, training)
    found = other.find(training.token)
    assert found.plan.commands == training.plan.commands
    assert (found.out, found.has_model) == (training.out, True)
    assert other.look(found).state == "running"
    until(lambda: other.look(found) and found.points)  # its curve goes on here
    with pytest.raises(BusyError, match="Another replica"):
        other._ask(found)
    other.cancel(found)
    assert ended(one, training).state == "cancelled"
    until(lambda: not is_alive(pid))
    assert ended(other, found).state == "cancelled"
    other.resume(found)  # which goes on from where it was
    assert one.look(training).is_under_way
    assert other.look(found).state == "running"
    until(lambda: (training.folder / "words").read_text().endswith("--resume"))


def test_what_one_replica_trained_stays_when_it_ends_and_one_that_is_deleted_is_held_no_longer(beside):
    one, other = beside
    running, done, deleted = (one.begin(plan(word)) for word in ("learn", "done", "done"))
    learning(one, running)
    held = [file for file in Path("/proc/self/fd").iterdir() if os.path.realpath(file) == str(deleted.lock._path)]
    assert len(held) == 1
    one.forget(deleted)  # while it waits
    assert not held[0].exists()
    one.close()
    found, finished = other.find(running.token), other.find(done.token)
    assert ended(other, found).state == "cancelled"
    assert has_state(found.now)  # it was asked to keep its state
    assert other.look(finished).state == "cancelled"  # its turn never came
    other.forget(found)
    assert one.find(running.token) is None
    assert not running.folder.exists()


def test_a_training_that_is_looked_at_elsewhere_is_not_old_and_what_never_became_one_goes_in_time(beside):
    one, other = beside
    training = one.begin(plan("done"))
    ended(one, training)
    for looked_at in (True, False):
        os.utime(training.folder, (0, 0))
        if looked_at:
            other.find(training.token)
        one.sweep()
        assert training.folder.exists() == looked_at
    folder = one.root / ("x" * 22)
    folder.mkdir()
    one.sweep()
    assert folder.exists()
    os.utime(folder, (0, 0))
    one.sweep()
    assert not folder.exists()


def test_one_that_is_just_ending_goes_on_once_it_has_ended_and_a_full_disk_leaves_it_to_whoever_goes_on_with_it(beside):
    one, other = beside
    training = one.begin(plan("learn", "--max-minutes", "5"))
    learning(one, training)
    one.when(training, 3600, lambda: time.sleep(0.5))  # its end takes a while
    one.cancel(training)
    ended(one, training)
    about = training.folder / module.ABOUT
    about.unlink()
    about.mkdir()  # nothing can be written there
    before = training.plan, training.times
    with pytest.raises(OSError, match=module.ABOUT):
        one.resume(training, minutes=3)
    assert (training.plan, training.times) == before
    about.rmdir()
    one.resume(training, minutes=3)
    assert one.look(training).is_under_way
    assert other.find(training.token).plan.minutes == 3
