"""Checkpoints are listed with what is wrong, no link leaves their folder, and other names mean what comes along."""

import json
import os
import shutil
import sys

import pytest

from transformer.checkpoint import listing, load, tokenizer_files
from transformer.checkpoint import named as by_name
from transformer.checkpoint.listing import listing as list_checkpoints
from transformer.checkpoint.named import check_name, named
from transformer.errors import CheckpointError

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture
def root(checkpoint_folder, shared_checkpoint_folder, tmp_path):
    shutil.copytree(checkpoint_folder, tmp_path / "a" / "tiny")
    shutil.copytree(shared_checkpoint_folder, tmp_path / "a" / "shared")
    return tmp_path / "a"


def test_good_checkpoints_are_listed_by_name_with_their_titles(root):
    (root / "shared" / "card.json").write_bytes(b"\xff" * 99)
    for name in (".hidden", "zh-en.training", ".tiny.old.x", "empty"):
        (root / name).mkdir()
    (root / "file").touch()
    empty, *entries = list_checkpoints([root, root / "nothing", root / "file", root / "nu\0l"])
    assert "config.json: is missing" in empty.error
    assert [(e.name, e.folder.name, e.error, e.title) for e in entries] == [
        ("shared", "shared", None, "shared"),
        ("tiny", "tiny", None, "Tiny"),
    ]


def many_tensors(n):
    header = {f"t{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(n)}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"[" * 60_000, "its brackets are nested"),
        ("source.model", b"x" * 16_000_001, "the limit is 16,000,000"),
        ("model.safetensors", many_tensors(10_000), "has 10,000 tensors, but config.json requires only"),
        ("vocabulary.json", b'{"family": "byt5"}', "vocabulary.json: no extension reads tokenizers of other programs."),
    ],
)
def test_a_broken_one_is_listed_with_what_is_wrong_and_no_parameters_are_read(
    root, monkeypatch, name, content, message
):
    monkeypatch.setattr(load.tensorfile, "read_into", None)
    monkeypatch.setattr(tokenizer_files.sentencepiece_check, "check", None)
    assert [entry.error for entry in list_checkpoints([root])] == [None, None]
    monkeypatch.setattr(tokenizer_files, "provided", lambda name: ())
    (root / "tiny" / name).write_bytes(content)
    if name == "model.safetensors":
        (root / "shared" / "config.json").unlink()
        monkeypatch.setattr(load.tensorfile, "_info", lambda *_: pytest.fail("a tensor was looked at"))
    other, broken = list_checkpoints([root])
    assert (other.error is None) == (name != "model.safetensors")
    assert message in broken.error
    assert broken.title == "Tiny"
    if name == "vocabulary.json":
        with pytest.raises(CheckpointError, match=message):
            load.load(root / "tiny")


def test_what_did_not_change_is_not_looked_at_again(root, monkeypatch):
    looked, look = [], listing.entry_at
    monkeypatch.setattr(listing, "entry_at", lambda folder, *more: looked.append(folder.name) or look(folder, *more))
    seen = listing.ListingCache()
    first = list_checkpoints([root], seen=seen)
    assert list_checkpoints([root], seen=seen) == first
    assert looked == ["shared", "tiny"]
    (root / "tiny" / "source.model").unlink()
    assert "source.model: is missing" in list_checkpoints([root], seen=seen)[1].error
    assert looked == ["shared", "tiny", "tiny"]
    shutil.rmtree(root / "tiny")
    assert list_checkpoints([root], seen=seen) == first[:1]
    assert len(seen.entries) == 1


@posix
def test_links_may_not_leave_the_root_and_odd_names_are_literal_or_left_out(root, checkpoint_folder):
    links = {"away": checkpoint_folder, "dead": "nowhere", "circle": "circle", "again": root, "alias": "tiny"}
    for name, target in links.items():
        (root / name).symlink_to(target)
    literal = ["<script>alert(1)<", "=HYPERLINK(1)", "x" * 255, "注意"]
    for name in (*literal, "two\nlines", "tab\there", "bell\a", "right\u202eleft"):
        (root / name).mkdir()
    os.mkdir(os.fsencode(root) + b"/\xff\xfe")
    assert {entry.name for entry in list_checkpoints([root])} == {*literal, "alias", "shared", "tiny"}


def test_equal_names_in_two_folders_can_be_told_apart(root, tmp_path):
    shutil.copytree(root, tmp_path / "b")
    (tmp_path / "b" / "tiny (2)").mkdir()
    found = list_checkpoints([root, tmp_path / "b"])
    assert [e.name for e in found] == ["shared", "tiny", "shared (2)", "tiny (2)", "tiny (2) (2)"]
    assert len({e.folder for e in found}) == 5


def test_a_name_that_is_not_here_means_the_checkpoint_that_comes_along(tmp_path, monkeypatch):
    shipped = tmp_path / "checkpoints"
    for name in ("one", "two"):
        (shipped / name).mkdir(parents=True)
        (shipped / name / "config.json").touch()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(by_name, "shipped", lambda: shipped)
    for source in ("one", "one@12", "checkpoints/one"):
        assert named(source) == shipped / source.removeprefix("checkpoints/")
    for source in ("three", "other/one", "/one", "../one", "", ".", "..", "..@1", "o\0ne"):  # left as it was
        assert named(source) == by_name.Path(source)
    with pytest.raises(CheckpointError, match=r"^three: there is no such file or folder.* there are one, two\.$"):
        check_name(named("three"))
    for right in ("one", "one@12", "other/three"):
        check_name(named(right))  # a path says itself what is not there
    (tmp_path / "here" / "one").mkdir()  # what is here comes first
    assert [str(named(one)) for one in ("one", "one@12")] == ["one", "one@12"]
