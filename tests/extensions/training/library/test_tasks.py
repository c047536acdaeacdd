"""The files of the made-up tasks are solved right, hold nothing twice, and are the same every time."""

import hashlib
from collections import Counter

import numpy as np
import pytest

from glassformer.extensions.training.library.preparation import TASKS, write_task
from transformer.__main__ import main
from transformer.errors import DataError


def solved(name, given):
    match name:
        case "reverse":
            return "".join(reversed(given))
        case "sort":
            return "".join(sorted(given))
        case "copy":
            return given
        case "noise":  # the same for the same row, and else without any rule
            return TASKS["noise"].solve(given)
    first, second = given.removesuffix("=").split("+")
    assert all(number == str(int(number)) and len(number) <= 3 for number in (first, second))
    return str(int(first) + int(second))


@pytest.mark.parametrize("name", TASKS)
def test_nothing_is_given_twice_what_is_wanted_is_right_and_dev_has_every_length(name, tmp_path):
    write_task(name, tmp_path, train=3_000, dev=50, test=70)
    parts = {part: (tmp_path / f"{part}.tsv").read_text().splitlines() for part in ("train", "dev", "test")}
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 3_000, "dev": 50, "test": 70}
    rows = [row.split("\t") for part in parts.values() for row in part]
    assert len({row[0] for row in rows}) == len(rows)
    for given, *wanted in rows:
        if name == "palindrome":
            assert given.isascii()
            assert given.isalpha()
            assert given == given[::-1]
            assert len(given) in (4, 6, 8, 10, 12)
        else:
            assert wanted == [solved(name, given)]
    found = {len(row.split("\t")[0]) for row in parts["dev"]}
    expected = {"addition": range(4, 9), "palindrome": range(4, 13, 2)}.get(name, range(2, 13))
    assert len(found & {*expected}) >= len(expected) - 2


def test_noise_is_uniform_over_its_pieces_and_no_source_tells_anything_of_it(tmp_path):
    """Its entropy is that of the line which the page draws, but for the first piece, which cannot be the end."""
    write_task("noise", tmp_path, train=9_000)
    rows = [row.split("\t") for row in (tmp_path / "train.tsv").read_text().splitlines()]
    later = Counter(piece for _, target in rows for piece in f"{target}."[1:])
    n = sum(later.values())
    assert sorted(later) == sorted("abcdefgh.")
    assert sum((count - n / 9) ** 2 / (n / 9) for count in later.values()) < 27  # chi squared of 8: 26 is 1 in 1,000
    same = np.mean([source[0] == target[0] for source, target in rows])
    assert same == pytest.approx(1 / 8, abs=0.015)


def test_lengths_are_as_asked_for_and_what_cannot_be_drawn_is_a_sentence(tmp_path):
    for name, given, length in (("copy", 36, len), ("addition", 6, lambda row: max(map(len, row[:-1].split("+"))))):
        assert main(["task", name, "--out", str(tmp_path / name), "--longest", str(given), "--train", "1"]) == 0
        rows = [row.split("\t")[0] for row in (tmp_path / name / "test.tsv").read_text().splitlines()]
        assert max(map(length, rows)) == given
    with pytest.raises(DataError, match=r"--longest 2: only 676 different lines of 61,500 could be drawn; raise it"):
        write_task("sort", tmp_path / "few", longest=2)
    for changes, said in (({"longest": 3}, "--longest is 3; expected at least 4"), ({"train": 0}, "--train is 0")):
        with pytest.raises(DataError, match=said):
            write_task("palindrome", tmp_path / "none", **changes)


def test_the_command_writes_what_the_shipped_checkpoints_learned_from(tmp_path):
    expected = {
        "reverse": "8b1c2ff65e7c46436cd9b4316c0ade819f7a4040af87d07c406c4460b6697d79",
        "addition": "7054a2c9471c279560c6adf66f2f586cb57db4512da35d52bbe6939208fa39bd",
        "palindrome": "09160535fae0e8ffe76740b7b51acf96eeeb6740d3175f2f3dc0e8142998b789",
    }
    for name, sha256 in expected.items():
        assert main(["task", name, "--out", str(tmp_path / name)]) == 0
        assert hashlib.sha256((tmp_path / name / "train.tsv").read_bytes()).hexdigest() == sha256, name


def test_other_files_of_these_names_are_kept_and_equal_ones_are_no_harm(tmp_path):
    sizes = {"train": 10, "dev": 2, "test": 2}
    for _ in range(2):
        write_task("sort", tmp_path, **sizes)
    (tmp_path / "train.tsv").unlink()
    (tmp_path / "dev.tsv").write_text("mine\n")
    with pytest.raises(DataError, match="already exists with different content"):
        write_task("sort", tmp_path, **sizes)
    assert (tmp_path / "dev.tsv").read_text() == "mine\n"
    assert not (tmp_path / "train.tsv").exists()
