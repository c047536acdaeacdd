"""An upload is guessed by nobody, counted, expires and is gone with its server; one process reads all, and may fail."""

import os
import signal
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from glassformer.extensions.uploads import upload_store as module
from glassformer.extensions.uploads.library.upload_folder import Read
from glassformer.extensions.uploads.library.upload_worker import Done
from glassformer.extensions.uploads.session_uploads import queue
from glassformer.extensions.uploads.upload_store import (
    KEPT_SECONDS,
    PREFIX,
    RECEIVED,
    WAITING_SECONDS,
    UploadReader,
    UploadStore,
)
from tests.glassformer.waiting import until
from transformer.errors import CheckpointError


@pytest.fixture
def gone():
    return []


@pytest.fixture
def store(tmp_path, gone):
    found = UploadStore(tmp_path, most=1000, forgotten=gone.append)
    yield found
    found.close()


def kept(store, size=10):
    """An upload that was read."""
    upload = store.begin()
    store.count(upload.token, size)
    made = upload.folder / "made" / "lesson"
    made.mkdir(parents=True)
    (made / "config.json").write_bytes(b"x" * size)
    (upload.folder / RECEIVED / "0").write_bytes(b"received")
    return store.keep(upload.token, made, native=True, left_out=("README.md",))


def test_only_what_was_made_is_kept_and_nobody_else_may_look_into_it(store):
    upload = kept(store)
    assert store.find(upload.token) == upload
    assert {path.name for path in upload.folder.iterdir()} == {"lesson", module.ABOUT}
    assert upload.made.joinpath("config.json").read_bytes() == b"x" * 10
    assert (upload.native, upload.left_out, upload.n_bytes) == (True, ("README.md",), 10)
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in (store.root, upload.folder))


def test_names_cannot_be_guessed_and_what_waits_cannot_be_opened(store, beside, tmp_path):
    names = {store.begin().token for _ in range(20)}
    assert len(names) == 20
    assert all(len(name) >= 22 for name in names)
    (tmp_path.parent / "x").mkdir(exist_ok=True)
    for name in (*names, "in-use", "..", "../x", ".", "", "a/b", "x" * 15, "x" * 16):
        assert store.find(name) is beside[0].find(name) is None


def test_what_nobody_uses_is_removed(store, gone):
    used, unused = kept(store), kept(store)
    waits = store.begin()

    def age(seconds):
        for one in (used, unused, waits):
            if one.folder.exists():
                os.utime(one.folder, times=(time.time() - seconds,) * 2)

    age(WAITING_SECONDS + 1)
    store.sweep()
    assert store.is_gone(waits.token)
    age(KEPT_SECONDS + 1)
    assert store.find(used.token) is not None
    store.sweep()
    assert store.find(used.token) is not None
    assert store.find(unused.token) is None
    assert not waits.folder.exists()
    assert not unused.folder.exists()
    assert [one.token for one in gone] == [waits.token, unused.token]


def test_bytes_and_uploads_are_counted(store, monkeypatch):
    first, second = store.begin(), store.begin()

    def refused(said, call, *of):
        with pytest.raises(CheckpointError, match=said):
            call(*of)

    store.count(first.token, 700)
    refused(r"no room for 400 more bytes on this server \(300 are left", store.count, second.token, 400)
    store.forget(first.token)
    store.count(second.token, 400)
    refused("This upload is no longer available", store.count, first.token, 1)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: SimpleNamespace(free=50))
    refused("no room", store.count, second.token, 100)
    monkeypatch.setattr(module, "MOST_KEPT", 1)
    refused("already holds 1 uploaded models", store.begin)


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path):
    killed = os.fork()
    if not killed:
        try:
            (UploadStore(tmp_path).begin().folder / RECEIVED / "0").write_bytes(b"x")
            signal.pause()
        finally:
            os._exit(1)
    until(lambda: list(tmp_path.glob("*/*/*/0")))
    [left] = tmp_path.iterdir()
    UploadStore(tmp_path).close()  # while it lives nobody touches it
    assert left.is_dir()
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    assert left.is_dir()
    (tmp_path / f"{PREFIX}link").symlink_to("/etc")
    UploadStore(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}link"]


@pytest.fixture
def beside(tmp_path):
    """Two replicas that share a folder."""
    gone = []
    place = tmp_path / "shared"
    return UploadStore(shared=place), UploadStore(shared=place, forgotten=gone.append), gone


def test_another_replica_opens_and_removes_what_one_was_given(beside):
    one, other, gone = beside
    waiting, upload = one.begin(), kept(one)
    assert other.find(waiting.token) is None  # nobody has read it yet
    found = other.find(upload.token)
    assert (found.made, found.native, found.left_out) == (upload.made, True, ("README.md",))
    assert other.room() <= one.room()
    one.close()  # a replica that ends
    assert other.find(upload.token)
    third = UploadStore(shared=one.root)
    assert third.find(upload.token).n_bytes == 10
    third.forget(upload.token)
    assert [store.find(upload.token) for store in (one, other)] == [None, None]
    assert [upload.token for upload in gone] == [upload.token]  # so nothing of it stays in memory
    assert not upload.folder.exists()


@pytest.mark.parametrize("read", [True, False])
def test_what_is_used_at_one_replica_is_not_old_for_another(beside, read):
    one, other, _ = beside
    upload = kept(one) if read else one.begin()
    limit = KEPT_SECONDS if read else WAITING_SECONDS
    long_ago = time.time() - limit - 60
    os.utime(upload.folder, (long_ago, long_ago))
    one.find(upload.token) if read else one.count(upload.token, 1)
    other.sweep()
    assert upload.folder.exists()
    os.utime(upload.folder, (long_ago, long_ago))
    other.sweep()
    assert not upload.folder.exists()


def test_what_moves_to_its_place_while_another_replica_looks_stays(beside, monkeypatch):
    one, other, _ = beside
    rename = os.rename

    def moved(source, target):
        rename(source, target)
        other.sweep()  # which finds nothing there for a moment
        monkeypatch.setattr(module.os, "rename", rename)

    upload = one.begin()
    other.sweep()
    remove, removed = module.shutil.rmtree, []
    monkeypatch.setattr(module.shutil, "rmtree", lambda path, **named: removed.append(path) or remove(path, **named))
    monkeypatch.setattr(module.os, "rename", moved)
    made = upload.folder / RECEIVED
    one.keep(upload.token, made, native=True, left_out=())
    assert upload.folder not in removed
    assert other.find(upload.token)


def test_what_a_replica_left_that_was_killed_while_it_moved_is_removed(beside, monkeypatch):
    one, other, _ = beside
    upload = one.begin()
    monkeypatch.setattr(module.shutil, "rmtree", lambda *_, **__: None)
    one.keep(upload.token, upload.folder / RECEIVED, native=True, left_out=())
    monkeypatch.undo()
    [left] = [path for path in other.root.iterdir() if path != upload.folder]
    os.utime(left, (0, 0))
    other.sweep()
    assert [*other.root.iterdir()] == [upload.folder]


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
