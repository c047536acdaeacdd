"""Checkpoints are listed with what is wrong with them, and no link leaves their folder."""

import json
import os
import shutil
import sys

import pytest

from transformer.checkpoint import listing, load, tokenizer_files
from transformer.checkpoint.listing import listing as list_checkpoints
from transformer.errors import CheckpointError

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


@pytest.fixture
def root(checkpoint_folder, shared_checkpoint_folder, tmp_path):
    shutil.copytree(checkpoint_folder, tmp_path / "a" / "tiny")
    shutil.copytree(shared_checkpoint_folder, tmp_path / "a" / "shared")
    return tmp_path / "a"


def names(*roots):
    return [entry.name for entry in list_checkpoints(roots)]


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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"[" * 60_000, "its brackets are nested"),
        ("source.model", b"x" * 16_000_001, "the limit is 16,000,000"),
    ],
)
def test_a_broken_one_is_listed_with_what_is_wrong(root, name, content, message):
    (root / "tiny" / name).write_bytes(content)
    good, broken = list_checkpoints([root])
    assert good.error is None
    assert message in broken.error
    assert broken.title == "Tiny"


def test_no_parameters_are_read(root, monkeypatch):
    monkeypatch.setattr(load.tensorfile, "read_into", None)
    monkeypatch.setattr(tokenizer_files.sentencepiece_check, "check", None)
    assert [entry.error for entry in list_checkpoints([root])] == [None, None]


def test_what_did_not_change_is_not_looked_at_again(root, monkeypatch):
    looked, look = [], listing._look

    def note(folder, *arguments):
        looked.append(folder.name)
        return look(folder, *arguments)

    monkeypatch.setattr(listing, "_look", note)
    seen = listing.ListingCache()
    first = list_checkpoints([root], seen=seen)
    assert looked == ["shared", "tiny"]
    assert list_checkpoints([root], seen=seen) == first
    assert looked == ["shared", "tiny"]
    (root / "tiny" / "source.model").unlink()
    assert "source.model: is missing" in list_checkpoints([root], seen=seen)[1].error
    assert looked == ["shared", "tiny", "tiny"]
    shutil.rmtree(root / "tiny")
    assert list_checkpoints([root], seen=seen) == first[:1]
    assert len(seen.entries) == 1


def test_tensors_are_counted_before_they_are_looked_at(root, monkeypatch):
    header = {f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(10_000)}
    text = json.dumps(header).encode()
    (root / "tiny" / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    monkeypatch.setattr(load.tensorfile, "_info", lambda *_: pytest.fail("a tensor was looked at"))
    (root / "shared" / "config.json").unlink()
    assert "has 10,000 tensors, but config.json requires only" in list_checkpoints([root])[1].error


@posix
def test_links_may_not_leave_the_root(root, checkpoint_folder):
    (root / "away").symlink_to(checkpoint_folder)
    (root / "dead").symlink_to("nowhere")
    (root / "circle").symlink_to("circle")
    (root / "again").symlink_to(root)
    (root / "alias").symlink_to("tiny")
    assert names(root) == ["alias", "shared", "tiny"]


@posix
def test_odd_names_are_literal_or_left_out(root):
    literal = ["<script>alert(1)<", "=HYPERLINK(1)", "x" * 255, "注意"]
    for name in (*literal, "two\nlines", "tab\there", "bell\a", "right\u202eleft"):
        (root / name).mkdir()
    os.mkdir(os.fsencode(root) + b"/\xff\xfe")
    assert set(names(root)) == {*literal, "shared", "tiny"}


def test_equal_names_in_two_folders_can_be_told_apart(root, tmp_path):
    shutil.copytree(root, tmp_path / "b")
    (tmp_path / "b" / "tiny (2)").mkdir()
    found = list_checkpoints([root, tmp_path / "b"])
    assert [e.name for e in found] == ["shared", "tiny", "shared (2)", "tiny (2)", "tiny (2) (2)"]
    assert len({e.folder for e in found}) == 5


def test_a_tokenizer_that_no_extension_reads_is_said_in_one_sentence(checkpoint_folder, tmp_path, monkeypatch):
    folder = tmp_path / "other"
    shutil.copytree(checkpoint_folder, folder)
    (folder / "vocabulary.json").write_text('{"family": "byt5"}', encoding="utf-8")
    monkeypatch.setattr(tokenizer_files, "provided", lambda name: ())
    said = "vocabulary.json: no extension reads tokenizers of other programs."
    assert list_checkpoints([tmp_path])[0].error.endswith(said)
    with pytest.raises(CheckpointError, match=said):
        load.load(folder)
