"""Uploads are read by one process, which tells why it refuses one, goes on after a failure, and ends when it idles."""

from pathlib import Path

import pytest

from glassformer.extensions.uploads.library.upload_folder import Read
from glassformer.extensions.uploads.library.upload_worker_client import Done
from glassformer.extensions.uploads.session_uploads import queue
from glassformer.extensions.uploads.upload_store import UploadReader
from tests.glassformer.waiting import until
from transformer.errors import CheckpointError


class Quick:
    """In the place of the process."""

    ended = 0

    def read(self, received, folder, *, title, pickles, progress, stop):
        progress(Done(1, 2, title))
        if title == "fails":
            raise OSError(28, "No space left on device")
        if title == "refused":
            raise CheckpointError("It is damaged.")
        return Read(True, ())

    def end(self):
        self.ended += 1


@pytest.fixture
def reader():
    found = UploadReader(Quick())
    yield found
    found.end()


def test_what_fails_says_why_and_the_next_is_read(reader):
    jobs = [
        queue().ask(title, reader.work([], Path(title), title=title, pickles=True))
        for title in ("fails", "refused", "good")
    ]
    assert all(job.over.wait(5) for job in jobs)
    assert [str(job.seen.problem) for job in jobs[:2]] == [
        "The files could not be read on this server; try again later.",
        "It is damaged.",
    ]
    assert (jobs[2].seen.result, jobs[2].seen.so_far) == (Read(True, ()), Done(1, 2, "good"))
    assert reader._worker.ended == 1  # only after what was no refusal


def test_the_process_ends_when_there_is_nothing_to_read(reader):
    reader.rest()
    reader.rest(idle=-1)
    until(lambda: reader._worker.ended == 1)
