"""Answers are kept as a folder of a new name inside the folder of checkpoints; nothing there is ever replaced."""

from types import SimpleNamespace

import pytest
from safetensors.torch import save_file

from glassformer.extensions.importers import imported_model, third_party_models
from tests.extensions.importers.test_third_party_models import ANSWERS, state
from transformer.checkpoint.listing import entry_at
from transformer.checkpoint.load import load
from transformer.errors import CheckpointError


@pytest.fixture(scope="module")
def entry(tmp_path_factory):
    root = tmp_path_factory.mktemp("keeping").resolve()
    save_file(state(), root / "lesson.safetensors")
    return entry_at(root / "lesson.safetensors", "lesson.safetensors", root)


@pytest.mark.parametrize(
    "name",
    ["", " ", ".", "..", "../up", "a/b", "/etc/x", "a\\b", ".hidden", "a\0b", "a\nb", "x" * 81, "m.training", "m.npz"],
)
def test_a_name_that_is_a_path_or_means_something_else_is_refused(name):
    with pytest.raises(CheckpointError, match=r"cannot be used\. Use 1 to 80 letters"):
        imported_model.checked(name)


def test_the_folder_is_the_same_model_and_no_second_one_takes_its_place(entry):
    folder = imported_model.keep(entry, ANSWERS, " Übung 2 (neu)_模型.v1 ", entry.root)
    assert folder.name == "Übung 2 (neu)_模型.v1"  # names of any script are taken
    theirs, ours = third_party_models.open_foreign(entry, ANSWERS), load(folder)
    assert ours.config == theirs.config
    assert ours.run("5 6 7").output_text == theirs.run("5 6 7").output_text
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(CheckpointError, match="already exists; choose another name"):
        imported_model.keep(entry, ANSWERS, folder.name, entry.root)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_save_that_fails_leaves_no_folder(entry, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(imported_model, "save", full)
    with pytest.raises(CheckpointError, match="No space left on device"):
        imported_model.keep(entry, ANSWERS, "half", entry.root)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
    with pytest.raises(CheckpointError, match="only 1,000 are free"):  # said before anything is written
        imported_model.keep(entry, ANSWERS, "half", entry.root)
    assert not (entry.root / "half").exists()
