"""What another program saved is listed by its names and its config.json alone."""

import json
import os
import shutil

import numpy as np
import pytest

from glassformer.extensions.importers.library.readers import SUFFIXES
from transformer.checkpoint.listing import entry_at, listing


def entries(root):
    return [(entry.name, entry.holds, entry.error is None) for entry in listing([root])]


def test_files_and_folders_of_others_are_listed_and_not_opened(tmp_path):
    for suffix in SUFFIXES:
        (tmp_path / f"m{suffix}").touch()
    options = np.frombuffer(b"type: transformer\0", np.int8)
    np.savez(tmp_path / "m.npz", encoder_Wemb=np.zeros((700, 500)), **{"special:model.yml": options})
    os.mkfifo(tmp_path / "pipe.pt")  # whoever opens it waits for ever
    (tmp_path / ".hidden.pt").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "dir.pt").mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "weights.pth").write_bytes(b"no zip")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "config.json").write_text(json.dumps({"model_type": "gpt2", "d_model": 4}))
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").touch()
    found = entries(tmp_path)
    assert [one for one in found if one[0] != "dir.pt"] == [
        *((name, "foreign", True) for name in ("adapter", "one", "theirs")),
        *((f"m{suffix}", "foreign", True) for suffix in sorted(SUFFIXES)),
    ]
    assert ("dir.pt", "model", False) in found


def test_a_broken_one_of_ours_is_no_other_programs(checkpoint_folder, tmp_path):
    for name, damage in {"lost": None, "damaged": "{", "cut": '{"n_encoder_layers": 2}'}.items():
        shutil.copytree(checkpoint_folder, tmp_path / name)
        config = tmp_path / name / "config.json"
        config.unlink() if damage is None else config.write_text(damage)
    assert entries(tmp_path) == [(name, "model", False) for name in ("cut", "damaged", "lost")]


def test_a_link_to_a_file_outside_is_not_listed(tmp_path):
    (tmp_path / "outside.pt").touch()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link.pt").symlink_to(tmp_path / "outside.pt")
    assert entries(tmp_path / "root") == []


@pytest.mark.parametrize("place", ["deep/down/m.pt", "deep/down"])
def test_one_that_lies_deeper_has_an_entry_too(tmp_path, place):
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "deep" / "down" / "m.pt").touch()
    entry = entry_at(tmp_path / place, place, tmp_path)
    assert (entry.name, entry.holds, entry.error) == (place, "foreign", None)
