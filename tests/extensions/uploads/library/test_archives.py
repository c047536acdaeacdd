"""A zip archive is held to what it says and to what a model's archive may be; nothing else of it is unpacked."""

import io
import stat
import struct
import time
import warnings
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glassformer.extensions.uploads.library.archives import UploadLimits, unpack
from tests.conftest import AT_ONCE
from transformer.errors import CheckpointError

WEIGHTS = b"\x02\0\0\0\0\0\0\0{}"


def packed(entries, method=zipfile.ZIP_DEFLATED):
    """An archive of names, or of `ZipInfo`s, and contents."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that occur twice are meant
        for name, content in entries:
            archive.writestr(name, content, compress_type=method)
    return out.getvalue()


def unpacked(content, folder, **limits):
    """What comes out: contents by name, and the names that were left out."""
    folder.mkdir(exist_ok=True)
    found = unpack(io.BytesIO(content), folder, label="model.zip", limits=UploadLimits(**limits))
    assert {path.parent for path in found.files.values()} <= {folder}
    return {name: path.read_bytes() for name, path in found.files.items()}, found.left_out


def refused(content, folder, **limits):
    with pytest.raises(CheckpointError) as caught:
        unpacked(content, folder, **limits)
    assert str(caught.value).startswith("model.zip: ")
    return str(caught.value)


def entry(name, mode):
    found = zipfile.ZipInfo(name)
    found.external_attr = mode << 16
    return found


@pytest.mark.parametrize("folder", ["", "a/b/"])
def test_the_folder_with_the_weights_is_taken(tmp_path, folder):
    names = ["model.safetensors", "config.json", "onnx/model.bin", ".git/config", "__MACOSX/._config.json", "sub/"]
    found, left_out = unpacked(packed([(folder + name, name.encode()) for name in names]), tmp_path / "x")
    assert found == {name: name.encode() for name in names[:2]}
    assert left_out == (f"{folder}onnx/model.bin",)


NAMES = [
    *((name, "points outside the archive or is not a plain path") for name in (
        "../up.pt", "a/../../up.pt", "/etc/up.pt", "C:/up.pt", "a\\..\\up.pt", "./up.pt", "a//up.pt", "..", "a/..")),
    *((name, "cannot be used as a file name here") for name in (
        "a\nb.pt", "a\x1b[2Jb.pt", "x" * 300 + ".pt", "\u202egnp.pt")),
    *(((name, other), "count as the same file name") for name, other in (
        ("a.pt", "a.pt"), ("Model.pt", "model.PT"), ("\u00e9.pt", "e\u0301.pt"))),
    (("model.pt", "more.zip"), "'more.zip' is an archive inside the archive; unpack it first"),
    (("model.pt", "more.tar.gz"), "is an archive inside the archive"),
    (("a/model.safetensors", "b/model.safetensors"), "several models, in 'a', 'b'; pack only one of them"),
    (entry("model.pt", stat.S_IFLNK | 0o777), "is a link; pack the file itself"),
    *((entry("model.pt", mode), "is not a regular file; remove it") for mode in (
        stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK)),
]  # fmt: skip


def test_around_a_folder_that_is_made_for_weights_settings_are_taken_too(tmp_path):
    """As Lightning saves a run."""
    run = "run/version_0"
    names = (f"{run}/checkpoints/last.ckpt", f"{run}/hparams.yaml", f"{run}/checkpoints/a.txt", f"{run}/a.txt", "b.txt")
    found, left_out = unpacked(packed([(name, name.encode()) for name in names]), tmp_path)
    assert found == {"last.ckpt": names[0].encode(), "hparams.yaml": names[1].encode(), "a.txt": names[2].encode()}
    assert left_out == (names[3], "b.txt")


@pytest.mark.parametrize(("names", "said"), NAMES)
def test_names_and_kinds_that_no_archive_may_have(tmp_path, names, said):
    names = names if isinstance(names, tuple) else (names,)
    assert said in refused(packed([(name, WEIGHTS) for name in names]), tmp_path / "in")
    assert {path.name for path in tmp_path.rglob("*")} <= {"in"}


def spoilt(content, **put):
    """The archive with other bytes in its list of files, by their place there."""
    central = content.index(b"PK\x01\x02")
    for place, other in put.items():
        at = central + int(place[1:])
        content = content[:at] + other + content[at + len(other) :]
    return content


def test_encrypted_and_oddly_packed(tmp_path):
    plain = packed([("model.pt", WEIGHTS)])
    assert "is encrypted; pack it without a password" in refused(spoilt(plain, _8=b"\x01\x00"), tmp_path / "a")
    odd = packed([("a.pt", WEIGHTS)], zipfile.ZIP_LZMA)
    assert "is compressed with an unsupported method" in refused(odd, tmp_path / "b")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path):
    one, many = packed([("model.pt", bytes(20_000_000))]), packed([(f"{n}.pt", bytes(900_000)) for n in range(10)])
    began = time.process_time()
    for content, limits, said in (
        (one, {}, "more than 100 times its size"),
        (one, {"file": 10**6}, "the limit for one file is 1,000,000"),
        (many, {"unpacked": 8 * 10**6}, "would be 9,000,000 bytes when unpacked; the limit is 8,000,000"),
        (many, {"files": 5}, "contains 10 or more files; the limit is 5"),
    ):
        assert said in refused(content, tmp_path / "in", **limits)
    assert not list(tmp_path.rglob("[0-9]*"))
    assert time.process_time() - began < AT_ONCE


def test_a_size_that_is_not_true(tmp_path):
    """The list says 10 bytes, and 900,000 come out: what is more is never written."""
    ten = struct.pack("<I", 10)
    content = bytearray(spoilt(packed([("model.pt", bytes(900_000))]), _24=ten))
    content[22:26] = ten
    said = refused(bytes(content), tmp_path)
    assert "damaged zip archive" in said or "differs from the size listed in the archive" in said
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 10


def test_files_that_share_their_bytes(tmp_path):
    """Fifield's bomb: every entry of the list names the same packed bytes."""
    content = packed([("a.pt", bytes(1_000_000))])
    central, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    one = content[central:end]
    shared = one + one.replace(b"a.pt", b"b.pt") + one.replace(b"a.pt", b"c.pt")
    record = bytearray(content[end:])
    record[8:12] = struct.pack("<HH", 3, 3)
    record[12:16] = struct.pack("<I", len(shared))
    assert "damaged zip archive" in refused(content[:central] + shared + bytes(record), tmp_path)


def test_a_list_that_is_too_long_is_not_read(tmp_path):
    content = packed([("a.pt", b"x")])
    long = content[:-12] + b"\xff\xff" + struct.pack("<I", 2**31) + content[-6:]  # a zip64 archive
    assert "files; the limit is" in refused(long, tmp_path)


def test_what_is_no_archive(tmp_path):
    for content in (b"", b"PK", b"<html>", b"PK\x05\x06", b"PK\x03\x04" + bytes(100)):
        assert "is not a zip archive, or is cut off" in refused(content, tmp_path)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_spoilt_archive_is_refused_or_whole(tmp_path, data):
    """Whatever bytes are changed: one sentence, or files of the folder that are no larger than they may be."""
    files = [("m/model.pt", b"weights" * 50), ("m/config.json", b'{"a": 1}' * 9), ("m/x/y.txt", b"text" * 30)]
    content = bytearray(packed(files, data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))))
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 40))
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    try:
        found, _ = unpacked(bytes(content[: len(content) - cut]), folder, unpacked=100_000, file=50_000)
        said = "model.zip: "
    except CheckpointError as error:
        found, said = {}, str(error)
    assert said.startswith("model.zip: ")
    assert said.isprintable()
    assert sum(map(len, found.values())) <= 100_000
    assert all(path.name.isdigit() for path in tmp_path.iterdir())
