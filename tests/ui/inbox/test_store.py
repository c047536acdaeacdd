"""What was handed in: guessed by nobody, counted, expired, and gone with the server or with the next one's start."""

import stat
import subprocess
import sys

import pytest

from tests.ui.waiting import Clock
from transformer.errors import CheckpointError
from ui.inbox import store as module
from ui.inbox.store import KEPT_SECONDS, PREFIX, RECEIVED, WAITING_SECONDS, Store


@pytest.fixture
def clock():
    return Clock(0.0)


@pytest.fixture
def gone():
    return []


@pytest.fixture
def store(tmp_path, clock, gone):
    found = Store(tmp_path, clock=clock, most=1000, forgotten=gone.append)
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


def test_only_what_was_made_is_kept(store):
    upload = kept(store)
    assert store.find(upload.token) == upload
    assert [path.name for path in upload.folder.iterdir()] == ["lesson"]
    assert upload.made.joinpath("config.json").read_bytes() == b"x" * 10
    assert (upload.native, upload.left_out, upload.n_bytes) == (True, ("README.md",), 10)


def test_nobody_else_may_look_into_it(store):
    folders = [store.root, kept(store).folder]
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in folders)


def test_names_cannot_be_guessed_and_what_waits_cannot_be_opened(store):
    names = {store.begin().token for _ in range(20)}
    assert len(names) == 20
    assert all(len(name) >= 22 for name in names)
    assert not any(store.find(name) for name in names)
    assert store.find("") is store.find("..") is store.find("in-use") is None


def test_what_nobody_uses_is_removed(store, clock, gone):
    used, unused = kept(store), kept(store)
    waits = store.begin()
    clock.now = WAITING_SECONDS + 1
    store.sweep()
    assert store.is_gone(waits.token)
    assert not waits.folder.exists()
    clock.now = KEPT_SECONDS - 1
    assert store.find(used.token) is not None
    clock.now = KEPT_SECONDS + 2
    store.sweep()
    assert store.find(used.token) is not None
    assert store.find(unused.token) is None
    assert not unused.folder.exists()
    assert [one.token for one in gone] == [waits.token, unused.token]


def test_bytes_are_counted_over_all(store, clock):
    first, second = store.begin(), store.begin()
    store.count(first.token, 700)
    with pytest.raises(CheckpointError, match=r"no room for 400 more bytes on this server \(300 are left"):
        store.count(second.token, 400)
    store.forget(first.token)
    store.count(second.token, 400)
    with pytest.raises(CheckpointError, match="This upload is no longer available"):
        store.count(first.token, 1)


def test_a_full_disk_is_room_for_nothing(store, monkeypatch):
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: _Free())
    with pytest.raises(CheckpointError, match="no room"):
        store.count(store.begin().token, 100)


class _Free:
    free = 50


def test_uploads_are_counted(store, monkeypatch):
    monkeypatch.setattr(module, "MOST_KEPT", 3)
    for _ in range(3):
        store.begin()
    with pytest.raises(CheckpointError, match="already holds 3 uploaded models"):
        store.begin()


def test_what_a_killed_server_left_is_removed_by_the_next(tmp_path):
    script = f"""
from pathlib import Path
from ui.inbox.store import Store
store = Store(Path({str(tmp_path)!r}))
(store.begin().folder / "received" / "0").write_bytes(b"x")
print(store.root, flush=True)
input()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        left = tmp_path / killed.stdout.readline().decode().strip()
        beside = Store(tmp_path)  # while it lives nobody touches it
        assert left.is_dir()
        beside.close()
        killed.kill()
        killed.wait()
    assert left.is_dir()
    (tmp_path / f"{PREFIX}link").symlink_to("/etc")
    Store(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}link"]
