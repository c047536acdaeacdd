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


def test_a_file_is_read_whole_up_to_its_limit_and_what_was_replaced_or_rewritten_is_noticed(tmp_path, folder):
    (folder / "d").mkdir()
    files = FolderFiles(folder)
    assert files.read("a", limit=5) == b"12345"
    assert (files.has("a"), files.has("b")) == (True, False)
    for read in (files.read, files.check_size):
        with pytest.raises(CheckpointError, match="tiny/a: has 5 bytes; the limit is 4"):
            read("a", limit=4)
    for name, said in (("b", r"tiny/b: is missing\."), ("d", "tiny/d: is not a regular file")):
        with pytest.raises(CheckpointError, match=said):
            files.read(name, limit=9)
    for name in ("nowhere", "tiny/a", "no\0where"):
        with pytest.raises(CheckpointError, match=r"expected a folder|no such file or folder"):
            FolderFiles(tmp_path / name)
    (folder / "b").write_bytes(b"b")
    files.read("b", limit=9)
    assert files.changed() == []
    (folder / "new").write_bytes(b"54321")
    os.replace(folder / "new", folder / "a")
    assert files.changed() == ["a"]
    (folder / "b").unlink()
    assert sorted(files.changed()) == ["a", "b"]


@posix
def test_links_may_not_leave_the_folder(folder):
    for name, (target, message) in {
        "good": ("a", None),
        "up": ("../outside", "points outside the folder"),
        "absolute": ("/etc/hostname", "points outside the folder"),
        "dead": ("nothing", "is missing"),
        "circle": ("circle", "cannot be read"),
    }.items():
        (folder / name).symlink_to(target)
        if message is None:
            assert FolderFiles(folder).read(name, limit=9) == b"12345"
        else:
            with pytest.raises(CheckpointError, match=f"tiny/{name}: .*{message}"):
                FolderFiles(folder).read(name, limit=9)


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
        monkeypatch.chdir(folder)  # the path of a socket must be short
        listener.bind("socket")
        for name in ("pipe", "device", "socket"):
            assert re.search("not a regular file|points outside the folder", read_in_a_thread(folder, name))
    monkeypatch.setattr(FolderFiles, "_inside", lambda files, name: folder / name)
    assert read_in_a_thread(folder, "pipe") == f"{folder}/pipe: is not a regular file."


@posix
@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system does not tell where an open file is")
def test_a_folder_may_have_to_stay_inside_another_also_between_check_and_opening(tmp_path, folder, monkeypatch):
    """The check looks at a name; what counts is where the file is that was opened."""
    (tmp_path / "alias").symlink_to(folder)
    for place in (folder, tmp_path / "alias"):
        assert FolderFiles(place, inside=tmp_path).read("a", limit=9) == b"12345"
    root, aside = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    (root / "away").symlink_to(folder)
    with pytest.raises(CheckpointError, match="'away': now points to a place outside the folder of checkpoints"):
        FolderFiles(root / "away", inside=root)
    folder = folder.rename(root / "tiny")
    files, really_open = FolderFiles(folder, inside=root), os.open

    def swap_and_open(path, *arguments, **options):
        if not folder.is_symlink():
            folder.rename(aside)
            folder.symlink_to(aside)
        return really_open(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", swap_and_open)
        with pytest.raises(CheckpointError, match="now points to a place outside the folder of checkpoints"):
            files.read("a", limit=9)


def test_a_snapshot_in_the_hubs_cache_is_read_through_its_links_and_nothing_else_is(tmp_path):
    repository, outside = tmp_path / "models--org--name", tmp_path / "models--other" / "blobs" / "1"
    snapshot, blobs = repository / "snapshots" / "0ab", repository / "blobs"
    links = {"config.json": blobs / "123", "other": outside, "deeper": blobs / "deeper" / "123", "up": tmp_path / "up"}
    snapshot.mkdir(parents=True)
    files = FolderFiles(snapshot, inside=tmp_path.resolve())
    for name, target in links.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("{}")
        (snapshot / name).symlink_to(target)
        if name == "config.json":
            assert files.read(name, limit=9) == b"{}"
        else:
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
