"""A save that is killed, wherever that is, loses no checkpoint and nothing of others beside it.

Each copy is saved to by a process of its own that SIGKILL ends at another place. Nothing is really flushed to the disk:
what a process wrote is there although it was killed.
"""

import os
import shutil
import signal
from dataclasses import replace

import pytest

from transformer.checkpoint import save as saving
from transformer.checkpoint.listing import listing
from transformer.checkpoint.load import load
from transformer.checkpoint.save import OWN, save
from transformer.errors import CheckpointError
from transformer.files.atomic_saves import exchange

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no SIGKILL")


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
def parts(checkpoint_folder, checkpoint):
    models = tuple((checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model"))
    return saving.CheckpointContents(checkpoint.config, checkpoint.model.state_dict(), models, {"title": "New"})


@pytest.fixture(scope="module")
def killed(checkpoint_folder, parts, tmp_path_factory):
    """Folders whose save was killed, one for each place, by the way in which folders change places."""
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
