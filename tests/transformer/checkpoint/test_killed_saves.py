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
CALLS = ("mkdir", "fsync", "rename", "unlink", "rmdir")


class _Killer:
    """Counts what is called, and kills the process before or after one of the calls."""

    def __init__(self, place):
        self._left = place

    def _pass(self):
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def around(self, call):
        """The function, with a place before it and one after it."""

        def killing(*arguments, **options):
            self._pass()
            result = call(*arguments, **options)
            self._pass()
            return result

        return killing


def _save(parts, folder, place, way):
    killer = _Killer(place)
    os.fsync = lambda descriptor: None
    for name in CALLS:
        setattr(os, name, killer.around(getattr(os, name)))
    exchange = saving.exchange if way == "exchange" else lambda a, b: False
    saving.exchange = killer.around(exchange)
    saving.save(parts, folder)


def kill(source, parts, copies, way):
    """Kill one save after the other, each behind its next call: before the one after it, all that is there is alike."""
    for place in range(1, 1_000, 2):
        folder = copies / f"{place:03}" / "tiny"
        shutil.copytree(source, folder)
        (folder / "NOTES.md").write_text("my notes", encoding="utf-8")
        child = os.fork()
        if child == 0:
            _save(parts, folder, place, way)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


@pytest.fixture(scope="module")
def parts(checkpoint_folder, checkpoint):
    models = tuple((checkpoint_folder / name).read_bytes() for name in ("source.model", "target.model"))
    return saving.CheckpointContents(checkpoint.config, checkpoint.model.state_dict(), models, {"title": "New"})


@pytest.fixture(scope="module")
def killed(checkpoint_folder, parts, tmp_path_factory):
    """Folders whose save was killed, one for each place, by the way in which folders change places."""
    copies = {way: tmp_path_factory.mktemp(way) for way in ("exchange", "renames")}
    for way, folder in copies.items():
        kill(checkpoint_folder, parts, folder, way)
    return {way: sorted(copy / "tiny" for copy in folder.iterdir()) for way, folder in copies.items()}


def test_exchanged_folders_are_there_at_every_moment(killed, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "file").touch()
    if not exchange(tmp_path / "a", tmp_path / "b"):
        pytest.skip("this file system cannot")
    assert os.listdir(tmp_path / "b") == ["file"]
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
    for name in (".tiny.original", ".tiny.backup_1", ".tiny.saving", ".other.abcdefgh.saving", ".tiny.old.abcdefgh"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").touch()
    before = sorted(os.listdir(tmp_path))
    save(parts, tmp_path / "tiny")
    save(parts, tmp_path / "tiny")
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "tiny"])
    assert all((tmp_path / name / "config.json").exists() for name in before)
