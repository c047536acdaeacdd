"""Files of an untrusted folder are regular, inside it, within limits, and never waited for."""

import os
import re
import socket
import sys
import threading
from pathlib import Path

import pytest

from transformer.errors import CheckpointError
from transformer.files.untrusted_folder import FolderFiles

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "a").write_bytes(b"12345")
    (tmp_path / "outside").write_bytes(b"secret")
    return tmp_path / "tiny"


def test_a_file_is_read_whole_up_to_its_limit(folder):
    files = FolderFiles(folder)
    assert files.read("a", limit=5) == b"12345"
    with pytest.raises(CheckpointError, match="tiny/a: has 5 bytes; the limit is 4"):
        files.read("a", limit=4)
    with pytest.raises(CheckpointError, match="tiny/a: has 5 bytes; the limit is 4"):
        files.check_size("a", limit=4)
    assert files.has("a")
    assert not files.has("b")
    (folder / "d").mkdir()
    for name, said in (("b", r"tiny/b: is missing\."), ("d", "tiny/d: is not a regular file")):
        with pytest.raises(CheckpointError, match=said):
            files.read(name, limit=9)


@pytest.mark.parametrize("name", ["nowhere", "tiny/a", "no\0where"])
def test_what_is_no_folder(tmp_path, folder, name):
    with pytest.raises(CheckpointError, match=r"expected a folder|no such file or folder"):
        FolderFiles(tmp_path / name)


@posix
def test_links_may_not_leave_the_folder(folder):
    (folder / "good").symlink_to("a")
    (folder / "up").symlink_to("../outside")
    (folder / "absolute").symlink_to("/etc/hostname")
    (folder / "dead").symlink_to("nothing")
    (folder / "circle").symlink_to("circle")
    files = FolderFiles(folder)
    assert files.read("good", limit=9) == b"12345"
    for name, message in {
        "up": "points outside the folder",
        "absolute": "points outside the folder",
        "dead": "is missing",
        "circle": "cannot be read",
    }.items():
        with pytest.raises(CheckpointError, match=f"tiny/{name}: .*{message}"):
            files.read(name, limit=9)


def read_in_a_thread(folder, name):
    """Why a file is refused; nothing, if reading it waits for ever."""
    refusals = []

    def read():
        try:
            FolderFiles(folder).read(name, limit=9)
        except CheckpointError as error:
            refusals.append(str(error))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(60)
    return "".join(refusals)


@posix
def test_pipes_sockets_and_devices_are_refused_without_waiting_also_if_they_appear_after_the_check(folder, monkeypatch):
    os.mkfifo(folder / "pipe")
    (folder / "device").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(folder)  # the path of a socket must be short
        listener.bind("socket")
        os.chdir(here)
        for name in ("pipe", "device", "socket"):
            assert re.search("not a regular file|points outside the folder", read_in_a_thread(folder, name))
    monkeypatch.setattr(FolderFiles, "_inside", lambda files, name: folder / name)
    assert read_in_a_thread(folder, "pipe") == f"{folder}/pipe: is not a regular file."


def test_what_was_replaced_or_rewritten_is_noticed(folder):
    (folder / "b").write_bytes(b"b")
    files = FolderFiles(folder)
    files.read("a", limit=9)
    files.read("b", limit=9)
    assert files.changed() == []
    (folder / "new").write_bytes(b"54321")
    os.replace(folder / "new", folder / "a")
    assert files.changed() == ["a"]
    (folder / "b").unlink()
    assert sorted(files.changed()) == ["a", "b"]


@posix
def test_a_folder_may_have_to_stay_inside_another(tmp_path, folder):
    (tmp_path / "alias").symlink_to(folder)
    for place in (folder, tmp_path / "alias"):
        assert FolderFiles(place, inside=tmp_path).read("a", limit=9) == b"12345"
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "away").symlink_to(folder)
    with pytest.raises(CheckpointError, match="'away': now points to a place outside the folder of checkpoints"):
        FolderFiles(tmp_path / "root" / "away", inside=tmp_path / "root")


@posix
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system does not tell where an open file is")
def test_a_folder_that_becomes_a_link_between_check_and_opening_is_noticed(tmp_path, folder, monkeypatch):
    """The check looks at a name; what counts is where the file is that was opened."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a").write_bytes(b"secret")
    (tmp_path / "root").mkdir()
    folder = folder.rename(tmp_path / "root" / "tiny")
    files, really_open = FolderFiles(folder, inside=tmp_path / "root"), os.open

    def swap_and_open(path, *arguments, **options):
        if not folder.is_symlink():
            folder.rename(tmp_path / "root" / "aside")
            folder.symlink_to(tmp_path / "elsewhere")
        return really_open(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", swap_and_open)
        with pytest.raises(CheckpointError, match="now points to a place outside the folder of checkpoints"):
            files.read("a", limit=9)


def test_a_snapshot_in_the_hubs_cache_is_read_through_its_links_and_nothing_else_is(tmp_path):
    repository = tmp_path / "models--org--name"
    snapshot, blobs = repository / "snapshots" / "0ab", repository / "blobs"
    for folder in (snapshot, blobs, blobs / "deeper", tmp_path / "models--other" / "blobs"):
        folder.mkdir(parents=True)
    (blobs / "123").write_text("{}")
    (blobs / "deeper" / "123").write_text("{}")
    (snapshot / "config.json").symlink_to("../../blobs/123")
    files = FolderFiles(snapshot, inside=tmp_path.resolve())
    assert files.read("config.json", limit=9) == b"{}"
    outside = tmp_path / "models--other" / "blobs" / "1"
    outside.write_text("{}")
    for name, target in (("other", outside), ("deeper", blobs / "deeper" / "123"), ("up", tmp_path / "up")):
        target.touch()
        (snapshot / name).symlink_to(target)
        with pytest.raises(CheckpointError, match="points outside the folder"):
            files.read(name, limit=9)


def test_messages_call_a_folder_as_it_was_typed(tmp_path, monkeypatch):
    (tmp_path / "runs" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    typed = {"./runs//deep": "runs/deep/x", ".": "x", str(tmp_path / "runs"): str(tmp_path / "runs" / "x")}
    for path, label in typed.items():
        with pytest.raises(CheckpointError) as caught:
            FolderFiles(Path(path)).read("x", limit=1)
        assert str(caught.value) == f"{label}: is missing."
    inside = tmp_path.resolve()
    assert FolderFiles(inside / "runs" / "deep", inside=inside).label("x") == "runs/deep/x"  # no path of a server
