"""A save is whole or the old folder stays; tensors are written one by one as the safetensors library does."""

import hashlib
import json
import os
import shutil
import weakref
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest
import torch
from safetensors.torch import save as library_save

from transformer.checkpoint import save as saving
from transformer.checkpoint.load import load
from transformer.checkpoint.save import CheckpointContents, Held, n_bytes, save, write
from transformer.errors import CheckpointError


@pytest.fixture
def parts(checkpoint_folder):
    checkpoint = load(checkpoint_folder)
    tokenizers = [(checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model")]
    return CheckpointContents(checkpoint.config, checkpoint.model.state_dict(), tuple(tokenizers), {"title": "New"})


@pytest.fixture
def old(checkpoint_folder, tmp_path):
    """An existing folder to be replaced."""
    return shutil.copytree(checkpoint_folder, tmp_path / "place" / "tiny")


@pytest.fixture
def renames(monkeypatch):
    """A system that cannot exchange two folders in one call."""
    monkeypatch.setattr(saving, "exchange", lambda a, b: False)


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_what_is_saved_can_be_loaded_and_the_card_says_what_the_files_are(parts, tmp_path, dtype):
    folder = tmp_path / "deep" / "er" / "new"
    save(parts, folder, dtype=dtype)
    checkpoint = load(folder)
    assert (checkpoint.config, checkpoint.warnings) == (parts.config, ())
    for name, tensor in checkpoint.model.state_dict().items():
        assert torch.equal(tensor, parts.state[name].to(dtype).float())
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    assert (card["title"], card["parameters"]) == ("New", parts.config.count_parameters())
    assert card["sha256"].keys() == {"config.json", "model.safetensors", "source.model", "target.model"}
    for name, digest in card["sha256"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    folder.with_name("again").mkdir()  # an empty folder is written to
    save(parts, folder.with_name("again"), dtype=dtype)
    assert contents(folder) == contents(folder.with_name("again"))
    assert sorted(os.listdir(folder.parent)) == ["again", "new"]


@pytest.mark.parametrize("way", [saving.exchange, lambda a, b: False], ids=["exchange", "renames"])
def test_what_a_save_did_not_write_stays_in_the_folder(parts, old, monkeypatch, way):
    monkeypatch.setattr(saving, "exchange", way)
    (old / "NOTES.md").write_text("my notes")
    (old / "runs").mkdir()
    (old / "runs" / "deep").write_text("deep")
    (old.parent / "latest").symlink_to(old)
    curve = (old / "training.csv").read_bytes()
    for place in (old, old.parent / "latest"):
        save(parts, place)
        assert load(old).card.title == "New"
        assert (old / "training.csv").read_bytes() == curve
        assert (old / "NOTES.md").read_text() == "my notes"
        assert (old / "runs" / "deep").read_text() == "deep"
        assert sorted(os.listdir(old.parent)) == ["latest", "tiny"]
    assert (old.parent / "latest").is_symlink()


@pytest.mark.parametrize("inside", [{"thesis.txt": b"x"}, {"config.json": b"{}", "model.safetensors": b""}])
def test_a_folder_of_something_else_is_refused_and_left_alone(parts, tmp_path, inside):
    (tmp_path / "docs").mkdir()
    for name, content in inside.items():
        (tmp_path / "docs" / name).write_bytes(content)
    with pytest.raises(CheckpointError, match="docs: is neither empty nor a checkpoint"):
        save(parts, tmp_path / "docs")
    assert contents(tmp_path / "docs") == inside
    assert os.listdir(tmp_path) == ["docs"]
    file = tmp_path / "docs" / next(iter(inside))
    with pytest.raises(CheckpointError, match="expected a folder, found a file"):
        save(parts, file)
    assert file.is_file()


def failing(function, at):
    """The function, but call number `at` (from 0) says that the disk is full."""
    calls = iter(range(10_000))

    def call(*arguments, **options):
        if next(calls) == at:
            raise OSError(28, "No space left on device")
        return function(*arguments, **options)

    return call


def attempts(parts, folder, monkeypatch, name):
    """Save again and again, the named function of `os` failing one call later each time, until none fails."""
    for at in range(100):
        with monkeypatch.context() as patch:
            patch.setattr(saving.os, name, failing(getattr(os, name), at))
            try:
                save(parts, folder)
            except OSError as error:
                assert error.errno == 28  # noqa: PT017 (the last attempt succeeds)
                yield at
            else:
                return


@pytest.mark.parametrize(
    ("way", "name", "calls"),
    [("renames", "fsync", 7), ("renames", "rename", 2), ("exchange", "fsync", 8), ("exchange", "rename", 0)],
)
def test_whatever_fails_the_old_folder_is_whole_and_a_first_save_leaves_nothing(
    parts, old, tmp_path, monkeypatch, way, name, calls
):
    if way == "renames":
        monkeypatch.setattr(saving, "exchange", lambda a, b: False)
    before = contents(old)
    failed = [(contents(old), os.listdir(old.parent)) for _ in attempts(parts, old, monkeypatch, name)]
    assert failed == [(before, ["tiny"])] * len(failed)
    assert len(failed) >= calls  # an exchange is no rename
    (tmp_path / "first").mkdir()
    left = [os.listdir(tmp_path / "first") for _ in attempts(parts, tmp_path / "first" / "new", monkeypatch, name)]
    assert len(left) >= 1
    assert not any(left)
    assert load(old).card.title == load(tmp_path / "first" / "new").card.title == "New"


def test_even_if_nothing_can_be_renamed_any_more_the_old_files_are_not_lost(parts, old, monkeypatch, renames):
    before, calls = contents(old), []
    rename = os.rename

    def once(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        rename(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(saving.os, "rename", once)
        with pytest.raises(OSError, match="Input/output"):
            save(parts, old)
    (kept,) = old.parent.glob(".tiny.*.replaced")
    assert contents(kept) == before
    with pytest.raises(CheckpointError, match=rf"the previous files are in '{kept.name}'\. Rename that folder"):
        load(old)
    save(parts, old)
    assert load(old).card.title == "New"
    assert os.listdir(old.parent) == ["tiny"]


def test_files_are_flushed_before_the_folder_and_the_folder_before_it_is_renamed(parts, old, monkeypatch, renames):
    events, rename, fsync = [], os.rename, os.fsync

    def note_rename(source, target):
        events.append("rename")
        rename(source, target)

    def note_fsync(descriptor):
        events.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    monkeypatch.setattr(saving.os, "rename", note_rename)
    monkeypatch.setattr(saving.os, "fsync", note_fsync)
    save(parts, old)
    if os.path.exists("/proc/self/fd"):
        assert events == ["file"] * 6 + ["folder", "rename", "rename", "folder"]


def test_a_value_that_the_type_cannot_hold_is_named(parts, tmp_path):
    large = {**parts.state, "src_table": parts.state["src_table"] + 1e6}
    with pytest.raises(CheckpointError, match="src_table: a value is too large"):
        save(CheckpointContents(parts.config, large, parts.tokenizers, {}), tmp_path / "new")
    assert os.listdir(tmp_path) == []
    save(CheckpointContents(parts.config, large, parts.tokenizers, {}), tmp_path / "new", dtype=torch.float32)


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


@dataclass(frozen=True)
class Stream:
    """Tensors that exist only while they are written."""

    shapes: dict
    narrow: dict
    alive: list = field(default_factory=list)
    left_out: str = ""

    def read(self):
        for name in reversed(STATE):
            assert not any(one() is not None for one in self.alive)
            if name != self.left_out:
                tensor = STATE[name].clone()
                self.alive.append(weakref.ref(tensor))
                yield name, tensor
                del tensor


def stream(left_out=""):
    return Stream({name: tuple(tensor.shape) for name, tensor in STATE.items()}, NARROW, left_out=left_out)


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


def test_a_tensor_that_never_comes_or_has_another_shape_is_noticed(tmp_path):
    with pytest.raises(ValueError, match="odd was announced and never came"):
        written(tmp_path, stream(left_out="odd"))
    readable = stream()
    readable.shapes["wide"] = (3, 5)
    with pytest.raises(ValueError, match="wide is"):
        written(tmp_path, readable)


def test_a_value_too_large_in_any_part_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("transformer.checkpoint.consistency.LOOKED_AT", 4)
    state = MappingProxyType({"table": torch.cat((torch.ones(9, 2), torch.full((1, 2), 1e6)))})
    with pytest.raises(CheckpointError, match=r"table: a value is too large for torch\.float16"):
        written(tmp_path, Held(state))
