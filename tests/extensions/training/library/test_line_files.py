"""Files of lines and zips are read as their bytes say, within limits, or refused with what they are."""

import os
import zipfile

import pytest

from transformer.errors import DataError
from transformer.text import line_files as corpus
from transformer.text.line_files import read_lines


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


@pytest.fixture
def pack(tmp_path):
    def write_zip(members):
        path = tmp_path / "ba-eng.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return path

    return write_zip


def columns(*files):
    return [line.columns for line in read_lines(files)]


def test_columns_are_split_at_tabs_and_lines_at_line_feeds(write):
    path = write("a.tsv", "\ufeffGo.\tba\tby me\r\n\nx\u2028y\x85\tz\na\tb\tc\td\nlast\tone")
    rows = [("Go.", "ba", "by me"), ("",), ("x\u2028y\x85", "z"), ("a", "b", "c", "d"), ("last", "one")]
    assert [(line.number, line.columns) for line in read_lines([path])] == list(enumerate(rows, start=1))
    assert columns(write("a.tsv", "\ufeff\ufeffa\tb\n\ufeffc\td\n")) == [("\ufeffa", "b"), ("\ufeffc", "d")]
    assert columns(write("a.tsv", "")) == []


def test_two_files_are_read_side_by_side_and_are_equally_long(write):
    first, second = write("a.en", "Go.\nHome\tnow\n"), write("a.ba", "ba\r\nlo")
    assert columns(first, second) == [("Go.", "ba"), ("Home\tnow", "lo")]
    with pytest.raises(DataError, match="3 files were given; give one"):
        columns(first, second, first)
    for n_first, n_second in ((3, 5), (5, 3), (0, 2)):
        files = write("a.en", "a\n" * n_first), write("a.ba", "b\n" * n_second)
        with pytest.raises(DataError, match=rf"a.en has {n_first}( lines, but|\. Two files)") as caught:
            columns(*files)
        assert caught.match(rf"a.ba has {n_second}( lines, but|\. Two files)")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a\tb\rc\td\r", "lines end with CR alone"),
        (b"a\tb\nc\xff\td\n", r"not UTF-8 \(byte 5, line 2: 0xff\)"),
        (b"\xef\xbb\xbfa\tb\nc\xc3", r"not UTF-8 \(byte 8, line 2: 0xc3\)"),
        ("a\tb\n".encode("utf-16"), "looks like UTF-16"),
        (b"\x1f\x8b\x08\x00", "is compressed with gzip; decompress it first"),
        (b"a" * (corpus.MAX_LINE_BYTES + 1), "line 1: is longer than 100,000 bytes"),
        (b"PK\x03\x04 and no more", "cannot be unpacked"),
    ],
)
def test_a_file_that_is_no_text_says_what_it_is(write, content, message):
    with pytest.raises(DataError, match=message):
        columns(write("a.tsv", content))


def test_lines_and_bytes_are_limited(write, monkeypatch):
    assert len(columns(write("a.tsv", "a" * (corpus.MAX_LINE_BYTES - 1) + "\nb"))) == 2
    path = write("a.tsv", "aa\tb\n" * 10)
    for lines, n_bytes, message in ((10, 50, None), (10, 49, "10 lines or 49 bytes; split it"), (9, 50, "9 lines")):
        monkeypatch.setattr(corpus, "MAX_LINES", lines)
        monkeypatch.setattr(corpus, "MAX_BYTES", n_bytes)
        if message is None:
            assert len(columns(path)) == 10
            continue
        with pytest.raises(DataError, match=f"has more than {message}"):
            columns(path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_files_that_cannot_be_opened_and_pipes_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    said = {"none.tsv": r"none.tsv: cannot be read \(No such file", "": "not a regular", "pipe": "not a regular file"}
    for name, message in said.items():
        with pytest.raises(DataError, match=message):
            columns(tmp_path / name)


def test_the_one_file_of_pairs_in_a_zip_is_read_within_limits_and_nothing_is_written(pack, tmp_path, monkeypatch):
    about = "This is a text about the pairs.\nEnglish\tother\tattribution\nand so on.\nThey are lines."
    path = pack({"_about.txt": about, "../ba.txt": "\ufeffGo.\tba\tby me\nHi.\tlo\tby you\n", "x.png": "a\tb\n"})
    assert columns(path) == [("Go.", "ba", "by me"), ("Hi.", "lo", "by you")]
    assert [path.name for path in tmp_path.iterdir()] == ["ba-eng.zip"]
    monkeypatch.setattr(corpus, "MAX_BYTES", 100_000)
    for members, message in (
        ({"_about.txt": about}, "0 of its files have tab-separated lines"),
        ({"a.txt": "a\tb\n", "b.tsv": "a\tb\n"}, "2 of its files have tab-separated lines.*a.txt, b.tsv"),
        ({"ba.txt": "Go.\tba\n" * 100_000}, "ba-eng.zip/ba.txt: has more than"),  # of a small zip
    ):
        with pytest.raises(DataError, match=message):
            columns(pack(members))
    assert path.stat().st_size < 10_000
