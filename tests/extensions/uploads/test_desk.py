"""Uploads are read one at a time in their order; the queue is bounded, and drops what nobody waits for."""

import threading
from pathlib import Path

import pytest

from glassformer.extensions.uploads.library.upload_folder import Read
from glassformer.extensions.uploads.library.upload_worker_client import Done
from glassformer.extensions.uploads.upload_store import UploadQueue
from tests.glassformer.waiting import until
from transformer.errors import CheckpointError


class Slow:
    """In the place of the process: reads when it is told to."""

    pid = None

    def __init__(self):
        self.go, self.begun, self.ended, self.most, self.now = threading.Semaphore(0), [], 0, 0, 0

    def warm(self):
        pass

    def read(self, received, folder, *, title, pickles, progress, stop):
        self.begun.append(title)
        self.now += 1
        self.most = max(self.most, self.now)
        progress(Done(1, 2, title))
        while not self.go.acquire(timeout=0.01):
            if stop():
                self.now -= 1
                raise CheckpointError("It was ended.")
        self.now -= 1
        if title == "fails":
            raise OSError(28, "No space left on device")
        if title == "refused":
            raise CheckpointError("It is damaged.")
        return Read(True, ())

    def end(self):
        self.ended += 1


@pytest.fixture
def slow():
    return Slow()


@pytest.fixture
def desk(slow):
    found = UploadQueue(most=3, worker=slow)
    yield found
    found.close()


def submit(desk, title):
    return desk.submit([], Path(title), title=title, pickles=True)


def test_one_after_the_other_in_their_order(desk, slow):
    jobs = [submit(desk, title) for title in "a"]
    until(lambda: slow.begun == ["a"])
    jobs += [submit(desk, title) for title in "bcd"]
    assert [desk.before(job) for job in jobs] == [None, 1, 2, 3]
    assert jobs[0].done == Done(1, 2, "a")
    with pytest.raises(CheckpointError, match="3 uploads are already waiting to be read"):
        submit(desk, "e")
    for _ in jobs:
        slow.go.release()
    assert all(job.over.wait(5) for job in jobs)
    assert [job.read for job in jobs] == [Read(True, ())] * 4
    assert slow.begun == list("abcd")
    assert slow.most == 1


def test_what_fails_says_why_and_the_next_is_read(desk, slow):
    jobs = [submit(desk, title) for title in ("fails", "refused", "good")]
    for _ in jobs:
        slow.go.release()
    assert all(job.over.wait(5) for job in jobs)
    assert [str(job.refused) for job in jobs[:2]] == [
        "The files could not be read on this server; try again later.",
        "It is damaged.",
    ]
    assert jobs[2].read is not None


def test_jobs_that_nobody_waits_for(desk, slow):
    running = submit(desk, "running")
    until(lambda: slow.begun == ["running"])
    waiting, last = submit(desk, "waiting"), submit(desk, "last")
    desk.stop(waiting)
    desk.stop(running)
    assert waiting.over.is_set()
    assert running.over.is_set()
    slow.go.release()
    assert last.over.wait(5)
    assert slow.begun == ["running", "last"]


def test_the_process_ends_when_there_is_nothing_to_read(slow):
    desk = UploadQueue(idle=0.02, worker=slow)
    until(lambda: slow.ended)
    desk.close()
