"""Other formats than a checkpoint folder's are asked in turn, and none is needed."""

import pytest

from transformer.checkpoint import listing, opening
from transformer.checkpoint import load as native
from transformer.checkpoint.listing import Entry, Format
from transformer.errors import CheckpointError


class NotesFormat(Format):
    """Files that end in .notes; those called so but empty are at fault."""

    def lists(self, file, inside):
        return file.suffix == ".notes"

    def look(self, place, name, root):
        error = None if place.stat().st_size else "is empty"
        return Entry(name, place, error, name, root, holds="notes") if place.suffix == ".notes" else None

    def reads(self, source, *, inside):
        return source.suffix == ".notes"

    def load(self, source, how):
        return native.load(source.with_suffix(""), inside=how.inside)


class OtherFormat(NotesFormat):
    """The same files, without a fault."""

    def look(self, place, name, root):
        return Entry(name, place, None, name, root, holds="other")


def test_a_format_is_asked_for_what_is_no_checkpoint_folder(monkeypatch, tmp_path, checkpoint_folder):
    def entries(*formats):
        for module in (listing, opening):
            monkeypatch.setattr(module, "provided", lambda name: formats)
        return [(entry.name, entry.holds, entry.error is None) for entry in listing.listing([tmp_path])]

    for name in ("weights.pt", "maps.npz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "config.json").write_text('{"model_type": "gpt2"}')
    assert entries() == [("theirs", "model", False)]  # only folders
    assert opening.load(checkpoint_folder) == native.load(checkpoint_folder)
    assert opening.load(checkpoint_folder / "model.safetensors") == native.load(checkpoint_folder)
    with pytest.raises(CheckpointError, match="expected a folder, found a file"):
        opening.load(tmp_path / "weights.pt")

    (tmp_path / "theirs" / "config.json").unlink()
    (tmp_path / "theirs").rmdir()
    (tmp_path / "a.notes").write_text("a")
    (tmp_path / "b.notes").touch()
    assert entries(Format(), NotesFormat()) == [("a.notes", "notes", True), ("b.notes", "notes", False)]
    asked = checkpoint_folder.with_suffix(".notes")
    assert opening.load(asked, answers={"n": 1}) == native.load(checkpoint_folder)
    with pytest.raises(CheckpointError, match="so there are no questions"):
        opening.load(checkpoint_folder, answers={"n": 1})
    (tmp_path / "a.notes").unlink()
    assert entries(NotesFormat(), OtherFormat()) == [("b.notes", "other", True)]  # of several, who finds no fault
