"""A save, failing or killed wherever, is whole or the old folder stays; tensors are written as safetensors does."""

import hashlib
import json
import os
import shutil
import signal
import weakref
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace

import pytest
import torch
from safetensors.torch import save as library_save

from transformer.checkpoint import save as saving
from transformer.checkpoint.listing import listing
from transformer.checkpoint.load import load
from transformer.checkpoint.save import OWN, CheckpointContents, Held, n_bytes, save, write
from transformer.errors import CheckpointError
from transformer.files.atomic_saves import exchange


@pytest.fixture(scope="module")
def parts(checkpoint_folder, checkpoint):
    tokenizers = tuple((checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model"))
    return CheckpointContents(checkpoint.config, checkpoint.model.state_dict(), tokenizers, {"title": "New"})


@pytest.fixture
def old(checkpoint_folder, tmp_path):
    """An existing folder to be replaced."""
    return shutil.copytree(checkpoint_folder, tmp_path / "place" / "tiny")


@pytest.fixture(params=["exchange", "renames"])
def way(request, monkeypatch):
    """How the new folder takes the place of the old one; some systems cannot exchange two folders in one call."""
    if request.param == "renames":
        monkeypatch.setattr(saving, "exchange", lambda a, b: False)
    return request.param


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_is_saved_can_be_loaded_and_the_card_says_what_the_files_are(parts, tmp_path, dtype):
    folder, again = tmp_path / "deep" / "er" / "new", tmp_path / "deep" / "er" / "again"
    save(parts, folder, dtype=dtype)
    checkpoint = load(folder)
    assert (checkpoint.config, checkpoint.warnings) == (parts.config, ())
    for name, tensor in checkpoint.model.state_dict().items():
        assert torch.equal(tensor, parts.state[name].to(dtype).float())
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert (card["title"], card["parameters"]) == ("New", parts.config.count_parameters())
    names = ("config.json", "model.safetensors", "source.model", "target.model")
    assert card["sha256"] == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    again.mkdir()  # an empty folder is written to
    save(parts, again, dtype=dtype)
    assert contents(folder) == contents(again)
    assert sorted(os.listdir(folder.parent)) == ["again", "new"]


def test_what_a_save_did_not_write_stays_in_the_folder(parts, old, way):
    (old / "runs").mkdir()
    notes = {old / "NOTES.md": "my notes", old / "runs" / "deep": "deep"}
    for file, text in notes.items():
        file.write_text(text)
    notes |= {old / "training.csv": (old / "training.csv").read_text()}
    (old.parent / "latest").symlink_to(old)
    for place in (old, old.parent / "latest"):
        save(parts, place)
        assert load(old).card.title == "New"
        assert {file: file.read_text() for file in notes} == notes
        assert sorted(os.listdir(old.parent)) == ["latest", "tiny"]
    assert (old.parent / "latest").is_symlink()


@pytest.mark.parametrize("inside", [{"thesis.txt": b"x"}, {"config.json": b"{}", "model.safetensors": b""}])
def test_a_folder_of_something_else_is_refused_and_left_alone(parts, tmp_path, inside):
    (tmp_path / "docs").mkdir()
    for name, content in inside.items():
        (tmp_path / "docs" / name).write_bytes(content)
    with pytest.raises(CheckpointError, match="docs: is neither empty nor a checkpoint"):
        save(parts, tmp_path / "docs")
    with pytest.raises(CheckpointError, match="expected a folder, found a file"):
        save(parts, tmp_path / "docs" / next(iter(inside)))
    assert contents(tmp_path / "docs") == inside
    assert os.listdir(tmp_path) == ["docs"]


def failing(function, calls):
    """The function, but the calls of these numbers, from 0, say that the disk is full."""
    numbers = iter(range(10_000))

    def call(*arguments, **options):
        if next(numbers) in calls:
            raise OSError(28, "No space left on device")
        return function(*arguments, **options)

    return call


def attempts(parts, folder, monkeypatch, name):
    """Save again and again, the named function of `os` failing one call later each time, until none fails."""
    for at in range(100):
        with monkeypatch.context() as patch:
            patch.setattr(saving.os, name, failing(getattr(os, name), {at}))
            with suppress(OSError):
                save(parts, folder)
                return
        yield at


@pytest.mark.parametrize(("name", "calls"), [("fsync", {"renames": 7, "exchange": 8}), ("rename", {"renames": 2})])
def test_whatever_fails_the_old_folder_is_whole_and_a_first_save_leaves_nothing(
    parts, old, tmp_path, monkeypatch, way, name, calls
):
    before, first = contents(old), tmp_path / "first" / "new"
    failed = [(contents(old), os.listdir(old.parent)) for _ in attempts(parts, old, monkeypatch, name)]
    assert failed == [(before, ["tiny"])] * len(failed)
    assert len(failed) >= calls.get(way, 0)  # an exchange is no rename
    first.parent.mkdir()
    left = [os.listdir(first.parent) for _ in attempts(parts, first, monkeypatch, name)]
    assert (len(left) >= 1, any(left)) == (True, False)
    assert load(old).card.title == load(first).card.title == "New"


def test_even_if_nothing_can_be_renamed_any_more_the_old_files_are_not_lost(parts, old, monkeypatch):
    monkeypatch.setattr(saving, "exchange", lambda a, b: False)
    before = contents(old)
    with monkeypatch.context() as patch:
        patch.setattr(saving.os, "rename", failing(os.rename, range(1, 99)))
        with pytest.raises(OSError, match="No space"):
            save(parts, old)
    (kept,) = old.parent.glob(".tiny.*.replaced")
    assert contents(kept) == before
    with pytest.raises(CheckpointError, match=rf"the previous files are in '{kept.name}'\. Rename that folder"):
        load(old)
    save(parts, old)
    assert load(old).card.title == "New"
    assert os.listdir(old.parent) == ["tiny"]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="this system does not tell what an open file is")
def test_files_are_flushed_before_the_folder_and_the_folder_before_it_is_renamed(parts, old, monkeypatch):
    events, rename, fsync = [], os.rename, os.fsync

    def flushed(descriptor):
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    monkeypatch.setattr(saving, "exchange", lambda a, b: False)
    monkeypatch.setattr(saving.os, "rename", lambda *names: events.append("rename") or rename(*names))
    monkeypatch.setattr(saving.os, "fsync", flushed)
    save(parts, old)
    assert events == ["file"] * 6 + ["folder", "rename", "rename", "folder"]


STATE = {
    "wide": torch.randn(5, 3),
    "tall": torch.randn(3, 7).t(),
    "é “name”": torch.randn(4),
    "one": torch.tensor(1.5),
    "none": torch.empty(0, 3),
    "odd": torch.randn(3).half().float(),
    "a": torch.randn(2, 3).bfloat16().float(),
}
NARROW = {"odd": torch.float16, "a": torch.bfloat16, "none": torch.float16}


def stream(left_out=""):
    """Tensors that exist only while they are written."""
    alive = []

    def read():
        for name in reversed(STATE):
            assert not any(one() is not None for one in alive)
            if name != left_out:
                tensor = STATE[name].clone()
                alive.append(weakref.ref(tensor))
                yield name, tensor
                del tensor

    shapes = {name: tuple(tensor.shape) for name, tensor in STATE.items()}
    return SimpleNamespace(shapes=shapes, narrow=NARROW, read=read)


def written(tmp_path, readable, dtype=None):
    with (tmp_path / "file").open("wb") as file:
        write(file, readable, dtype)
    return (tmp_path / "file").read_bytes()


def test_each_tensor_is_gone_before_the_next_and_the_bytes_are_those_of_the_library(tmp_path):
    expected = {name: tensor.to(NARROW.get(name, torch.float32)).contiguous() for name, tensor in STATE.items()}
    assert written(tmp_path, stream()) == library_save(expected)
    assert n_bytes(stream()) == sum(tensor.nbytes for tensor in expected.values())
    halves = {name: tensor.half().contiguous() for name, tensor in STATE.items()}
    assert written(tmp_path, stream(), torch.float16) == library_save(halves) == written(tmp_path, Held(STATE))
    with pytest.raises(ValueError, match="odd was announced and never came"):
        written(tmp_path, stream(left_out="odd"))
    readable = stream()
    readable.shapes["wide"] = (3, 5)
    with pytest.raises(ValueError, match="wide is"):
        written(tmp_path, readable)


def test_a_value_that_the_type_cannot_hold_is_named_in_whatever_part_it_is(parts, tmp_path, monkeypatch):
    large = {**parts.state, "src_table": parts.state["src_table"] + 1e6}
    with pytest.raises(CheckpointError, match="src_table: a value is too large"):
        save(CheckpointContents(parts.config, large, parts.tokenizers, {}), tmp_path / "new")
    assert os.listdir(tmp_path) == []
    save(CheckpointContents(parts.config, large, parts.tokenizers, {}), tmp_path / "new", dtype=torch.float32)
    monkeypatch.setattr("transformer.checkpoint.consistency.LOOKED_AT", 4)
    state = MappingProxyType({"table": torch.cat((torch.ones(9, 2), torch.full((1, 2), 1e6)))})
    with pytest.raises(CheckpointError, match=r"table: a value is too large for torch\.float16"):
        written(tmp_path, Held(state))


def save_until(place, parts, folder, way):
    """Save, and be killed behind the call of this number: before the next one, all that is there is alike."""
    left = iter(range(place, -1, -1))

    def killing(call):
        def called(*arguments, **options):
            result = call(*arguments, **options)
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return called

    os.fsync = lambda descriptor: None
    for name in ("mkdir", "fsync", "rename", "unlink", "rmdir"):
        setattr(os, name, killing(getattr(os, name)))
    saving.exchange = killing(exchange if way == "exchange" else lambda a, b: False)
    saving.save(parts, folder)


@pytest.fixture(scope="module")
def killed(checkpoint_folder, parts, tmp_path_factory):
    """Folders whose save was killed, one for each place, by the way in which folders change places.

    Each is saved to by a process of its own that SIGKILL ends. Nothing is really flushed to the disk: what a process
    wrote is there although it was killed.
    """
    if not hasattr(os, "fork"):
        pytest.skip("Windows has no SIGKILL")
    folders = {"exchange": [], "renames": []}
    for way, found in folders.items():
        copies, status = tmp_path_factory.mktemp(way), 1
        while status:
            found.append(copies / f"{len(found):03}" / "tiny")
            shutil.copytree(checkpoint_folder, found[-1])
            (found[-1] / "NOTES.md").write_text("my notes", encoding="utf-8")
            child = os.fork()
            if child == 0:
                save_until(len(found) - 1, parts, found[-1], way)
                os._exit(0)
            status = os.waitpid(child, 0)[1]
    return folders


def test_exchanged_folders_are_there_at_every_moment(killed, tmp_path):
    (tmp_path / "a" / "inside").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot")
    assert os.listdir(tmp_path / "b") == ["inside"]
    folders = killed["exchange"]
    assert len(folders) > 15  # behind each call
    titles = [load(folder).card.title for folder in folders]
    assert titles == sorted(titles, reverse=True)  # "Tiny", then "New"
    assert set(titles) == {"Tiny", "New"}
    assert all(len(list(folder.parent.iterdir())) <= 2 for folder in folders)


def test_between_two_renames_the_hidden_copy_is_found_and_said(killed):
    lost = [folder for folder in killed["renames"] if not folder.exists()]
    assert lost
    for folder in lost:
        (hidden,) = folder.parent.glob(".tiny.*.replaced")
        with pytest.raises(CheckpointError, match=rf"a save was interrupted .* in '{hidden.name}'\. Rename"):
            load(folder)
        (entry,) = listing([folder.parent])
        assert (entry.name, entry.folder) == ("tiny", folder)
        assert hidden.name in entry.error
        assert load(hidden).card.title == "Tiny"


@pytest.mark.parametrize("way", ["exchange", "renames"])
def test_the_next_save_clears_what_was_left_and_loses_nothing(killed, parts, monkeypatch, way):
    if way == "renames":
        monkeypatch.setattr(saving, "exchange", lambda a, b: False)
    monkeypatch.setattr(saving.os, "fsync", lambda descriptor: None)
    for folder in killed[way][::3]:
        save(replace(parts, card={"title": "Newer"}), folder)
        assert os.listdir(folder.parent) == ["tiny"], folder
        assert {file.name for file in folder.iterdir()} == {*OWN - {"pieces.model"}, "NOTES.md"}
        assert (folder / "NOTES.md").read_text(encoding="utf-8") == "my notes"
        assert load(folder).card.title == "Newer"


def test_hidden_folders_of_other_names_are_left_alone(parts, tmp_path):
    others = {".tiny.original", ".tiny.backup_1", ".tiny.saving", ".other.abcdefgh.saving", ".tiny.old.abcdefgh"}
    for name in others:
        (tmp_path / name / "mine").mkdir(parents=True)
    for _ in range(2):
        save(parts, tmp_path / "tiny")
    assert {*os.listdir(tmp_path)} == {*others, "tiny"}
    assert all((tmp_path / name / "mine").exists() for name in others)
