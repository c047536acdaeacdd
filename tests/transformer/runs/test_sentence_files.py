"""Lines of a file are numbered as an editor does, and what is wrong with one is said of that one."""

import pytest

from transformer.errors import DataError
from transformer.runs.sentence_files import FileLimits, read_bytes, read_file, read_text

SMALL = FileLimits(n_bytes=60, lines=3, characters=8)


def test_a_line_is_a_source_or_a_pair():
    text = "\ufeffone\r\n\n  two \t zwei\n \t \nthree\t\nfour\u2028five"
    lines = read_bytes(text.encode(), label="a file")
    assert [(one.number, one.source, one.reference, one.problem) for one in lines] == [
        (1, "one", None, None),
        (3, "two", "zwei", None),
        (5, "three", None, None),
        (6, "four\u2028five", None, None),
    ]


def test_what_is_wrong_with_a_line_is_said_of_that_line():
    fine, long, wide = read_text("e\u0301\ud800\tb\n123456789\na\tb\tc\td", SMALL, label="x")
    assert (fine.problem, fine.source) == (None, "é?")  # composed as a query is
    assert long.problem == "The line has 9 characters; the limit is 8. Shorten it."
    assert long.source == "12345678"
    assert wide.problem == "Expected a source, or a source and a reference separated by a tab; found 4 columns."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "x: has no sentences. Write one per line."),
        (b" \n\t\n", "x: has no sentences"),
        (b"a\nb\nc\n\nd", "x: has 4 lines with text; the limit is 3. Split it."),
        (b"a" * 61, "x: is larger than the limit of 60 bytes. Split it."),
        (b"ab\n\xff", "x: is not UTF-8 (byte 3: 0xff); save it as UTF-8."),
    ],
)
def test_what_is_wrong_with_all_of_it_is_one_sentence(content, expected):
    with pytest.raises(DataError) as error:
        read_bytes(content, SMALL, label="x")
    assert str(error.value).startswith(expected)


def test_a_file_that_is_not_there_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    assert read_file(tmp_path / "a.txt")[0].source == "one"
    with pytest.raises(DataError, match=r"b\.txt: cannot be read"):
        read_file(tmp_path / "b.txt")
