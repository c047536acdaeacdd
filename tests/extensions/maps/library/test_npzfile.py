"""A file of maps gives the same maps again, or one sentence; it is listed, runs no code and leads nowhere else."""

import contextlib
import io
import os
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glassformer.extensions.maps.library import npzfile
from glassformer.extensions.maps.library.npzfile import check_maps, read_maps
from tests.extensions.maps.library.made_up import SOURCE, all_three, weights
from tests.transformer.checkpoint.test_listing import posix
from tests.transformer.checkpoint.test_listing import root as root
from transformer import load_maps, save_maps
from transformer.checkpoint import listing
from transformer.checkpoint.listing import listing as list_checkpoints
from transformer.errors import CheckpointError, GlassformerError, MapsError

ARRAYS = {"encoder_weights": weights(2, 2, 5, 5), "encoder_queries": SOURCE, "encoder_keys": SOURCE}


def npz(arrays, **options):
    """The bytes of a file with some arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays, **options)
    return file.getvalue()


def read(content):
    return read_maps(io.BytesIO(content), len(content), label="a.npz")


def look(content):
    check_maps(io.BytesIO(content), len(content), label="a.npz")


def packed(members, *, how=zipfile.ZIP_DEFLATED, comment=b""):
    """A ZIP archive with some members, as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = comment
    return file.getvalue()


def npy(shape, dtype="<f4", content=b"", *, version=1):
    """An array's bytes, of which the header need not be true."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-len(header) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H", len(header)) + header + content


def test_a_file_holds_the_same_maps_again_and_whether_rows_sum_to_one(tmp_path):
    maps = all_three()
    save_maps(maps, tmp_path / "tiny.npz")
    again = load_maps(tmp_path / "tiny.npz")
    assert again.content_hash == maps.content_hash
    assert (again.checkpoint, again.sentence, again.special) == ("tiny-mt", "the cats", ("[CLS]", "[SEP]", "<s>"))
    assert [file.name for file in tmp_path.iterdir()] == ["tiny.npz"]
    with pytest.raises(MapsError, match=r"must end in \.npz"):
        save_maps(maps, tmp_path / "tiny")
    with pytest.raises(CheckpointError, match="is missing"):
        load_maps(tmp_path / "none.npz")

    half = all_three(encoder=weights(1, 1, 5, 5) / 2, sums_to_one=False)
    save_maps(half, tmp_path / "tiny.npz")
    assert not load_maps(tmp_path / "tiny.npz").of("encoder").sums_to_one
    with pytest.raises(MapsError, match=r"^a\.npz: encoder: the weights of layer 1, head 1, row 1 sum to 0\.5"):
        read(npz(ARRAYS | {"encoder_weights": ARRAYS["encoder_weights"] / 2}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoder_queries": np.array(SOURCE, dtype=object)}, "is 'object' of shape"),
        ({"encoder_weights": np.zeros((2, 2, 5, 5), int)}, "'int64'"),
        ({"encoder_weights": np.full((2, 2, 5, 5), np.nan)}, "is nan, not a number from 0 to 1"),
        ({"encoder_weights": np.full((2, 2, 5, 5), np.pi, dtype=object)}, "'object'"),
        ({"encoder_weights": np.zeros(3, [("a", "f4")])}, "an array of floats"),
        ({"encoder_queries": np.array([*"abcd", "e" * 201])}, "'<U201'"),
        ({"encoder_queries": np.array([b"a"] * 5)}, "a list of labels, stored as strings, not as pickled objects"),
        ({"encoder_allowed": np.ones((5, 5))}, "bools"),
        ({"encoder_sums_to_one": np.array(1)}, "one bool"),
        ({"sentence": np.array(["a"])}, "one string"),
        ({"self_weights": np.zeros(1)}, "the array 'self_weights' does not belong.*expected only encoder_weights"),
        ({"cross_keys": SOURCE}, "the array cross_weights is missing"),
    ],
)
def test_arrays_that_are_none_of_maps_are_refused_by_name(changes, said):
    with pytest.raises(MapsError, match=rf"^a\.npz: .*{said}"):
        read(npz(ARRAYS | changes))


@pytest.mark.parametrize(
    ("shape", "content", "said"),
    [
        *((shape, bytes(400), "encoder_weights: has") for shape in (
            "(200, 256, 4096, 4096)", "(1, 1, 99999999999, 1)", "(-1, 1, 1, 1)", "(2, 2, 5, 6)")),
        ("(1, 1, 5, 5)", bytes(50_000_000), r"the shape \(1, 1, 5, 5\) requires"),  # a small file that unpacks to much
    ],
)  # fmt: skip
def test_a_header_that_claims_more_or_less_than_there_is_is_refused_before_anything_is_read(shape, content, said):
    members = {f"{name}.npy": npy("(5,)", "<U1", b"\0" * 20) for name in ("encoder_queries", "encoder_keys")}
    with pytest.raises(MapsError, match=said):
        look(packed({"encoder_weights.npy": npy(shape, content=content)} | members))


ONE = {"encoder_weights.npy": npy("(1, 1, 1, 1)")}


@pytest.mark.parametrize(
    "content",
    [
        packed({"encoder_weights.npy": npy("(1, 1, 1, 1)", version=9)}),
        packed({"encoder_weights.npy": npy("(" * 300)}),
        packed({"encoder_weights.npy": b""}),
        packed({"../encoder_weights.npy": npy("(1, 1, 1, 1)")}),
        packed({f"{n}.npy": b"" for n in range(40)}),
        packed(ONE, how=zipfile.ZIP_LZMA),
        packed({}),
        packed(ONE, comment=b"more"),
        b"",
        b"PK",
        npz(ARRAYS)[:-30],
        npz(ARRAYS).replace(b"encoder_keys", b"encoder_weig"),
    ],
)
def test_what_is_no_file_of_maps_is_said_in_a_sentence(content):
    with pytest.raises(MapsError, match=r"^a\.npz: "):
        read(content)


def test_a_large_list_of_members_is_not_read():
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65535, 65535, 2**31, 0, 0)
    with pytest.raises(MapsError, match="lists 65,535 arrays or more"):
        look(bytes(100) + end)
    pointer = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)  # to a list of 64 bits, which would count instead
    with pytest.raises(MapsError, match="arrays or more"):
        look(npz(ARRAYS)[:-22] + pointer + npz(ARRAYS)[-22:])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_spoilt_file_gives_the_maps_or_a_sentence(data):
    """Bytes overwritten anywhere, and cuts: whatever comes of it is an error of ours, or maps that were checked."""
    content = bytearray(npz(ARRAYS))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + 4] = data.draw(st.binary(min_size=1, max_size=4))
    content = bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    with contextlib.suppress(GlassformerError):
        maps = read(content)
        assert np.isfinite(maps.maps("encoder")).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f8"])
def test_weights_are_unpacked_part_by_part(monkeypatch, dtype):
    monkeypatch.setattr(npzfile, "CHUNK", 7)
    found = read(npz(ARRAYS | {"encoder_weights": np.asfortranarray(ARRAYS["encoder_weights"].astype(dtype))}))
    np.testing.assert_allclose(found.maps("encoder"), ARRAYS["encoder_weights"], atol=1e-3)
    assert found.of("encoder").queries == tuple(SOURCE)


def test_a_small_file_takes_no_more_memory_than_is_said():
    """48 MB of weights in a small file: floats of 8 bytes, whole and copied, took four times that."""
    large = np.zeros((3, 2, 1000, 1000))
    large[..., 0] = 1
    file = io.BytesIO()
    labels = ["a"] * 1000
    np.savez_compressed(file, encoder_weights=large, encoder_queries=labels, encoder_keys=labels)
    del large
    tracemalloc.start()
    read(file.getvalue())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000


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
