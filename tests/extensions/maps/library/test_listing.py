"""Files of maps are listed with the checkpoints, and none leads out of its folder."""

import os

from tests.extensions.maps.library.made_up import all_three
from tests.transformer.checkpoint.test_listing import posix
from tests.transformer.checkpoint.test_listing import root as root
from transformer import save_maps
from transformer.checkpoint import listing
from transformer.checkpoint.listing import listing as list_checkpoints


def test_files_of_maps_are_listed_with_the_folders_of_their_root(root, tmp_path):
    save_maps(all_three(), root / "tiny.npz")
    save_maps(all_three(checkpoint="", sentence=""), root / "plain.npz")
    (root / "cut.npz").write_bytes((root / "tiny.npz").read_bytes()[:-9])
    (root / ".hidden.npz").write_bytes(b"")
    (tmp_path / "b").mkdir()
    save_maps(all_three(), tmp_path / "b" / "tiny.npz")
    entries = list_checkpoints([root, tmp_path / "b"])
    assert [(e.name, e.holds, e.title) for e in entries] == [
        ("shared", "model", "Tiny"),
        ("tiny", "model", "Tiny"),
        ("cut.npz", "maps", "cut.npz"),
        ("plain.npz", "maps", "plain.npz"),
        ("tiny.npz", "maps", "tiny-mt: the cats"),
        ("tiny.npz (2)", "maps", "tiny-mt: the cats"),
    ]
    assert [e.name for e in entries if e.error] == ["cut.npz"]
    assert "cut.npz: is not an .npz file" in next(e.error for e in entries if e.error)


@posix
def test_a_file_of_maps_that_is_a_link_out_of_the_root_or_a_pipe_is_not_opened(root, tmp_path):
    save_maps(all_three(), tmp_path / "elsewhere.npz")
    (root / "linked.npz").symlink_to(tmp_path / "elsewhere.npz")
    (root / "gone.npz").symlink_to(root / "nothing")
    os.mkfifo(root / "pipe.npz")
    errors = {entry.name: entry.error for entry in list_checkpoints([root]) if entry.holds == "maps"}
    assert "points outside the folder" in errors["linked.npz"]
    assert "is missing" in errors["gone.npz"]
    assert "not a regular file" in errors["pipe.npz"]


def test_maps_that_changed_are_looked_at_again(root):
    save_maps(all_three(), root / "tiny.npz")
    seen = listing.ListingCache()
    list_checkpoints([root], seen=seen)
    save_maps(all_three(sentence="another"), root / "tiny.npz")
    assert list_checkpoints([root], seen=seen)[-1].title == "tiny-mt: another"
