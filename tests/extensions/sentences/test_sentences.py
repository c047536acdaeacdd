"""The command `sentences` prints or writes a table of a file's lines, and names those that cannot be run."""

import csv
from pathlib import Path

import pytest

from tests.transformer.devices import refused_without_cuda as refused_without_cuda
from transformer.__main__ import main

REVERSE = str(Path(__file__).parents[3] / "checkpoints" / "reverse")


@pytest.fixture
def file(tmp_path):
    found = tmp_path / "lines.tsv"
    found.write_text("abc\tcba\n\nglass\n", encoding="utf-8")
    return found


def test_a_table_is_written_once(file, tmp_path, capsys):
    out = tmp_path / "out.csv"
    assert main(["sentences", REVERSE, str(file), "--csv", str(out), "--beam", "2"]) == 0
    with out.open(encoding="utf-8-sig", newline="") as content:
        rows = list(csv.DictReader(content))
    assert [row["output"] for row in rows] == ["cba", "ssalg"]
    assert float(rows[0]["score"]) > float(rows[0]["log_prob"]) - 1
    assert main(["sentences", REVERSE, str(file), "--csv", str(out)]) == 2
    assert "already exists; choose another file" in capsys.readouterr().err
    assert main(["sentences", REVERSE, str(file), "--csv", str(out), "--force"]) == 0


def test_lines_are_printed_and_summed_up_and_one_that_cannot_be_run_is_named(file, capsys):
    assert main(["sentences", REVERSE, str(file)]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("1\tabc\tcba\tlog-probability per token -0.1")
    assert first.endswith("chrF 100.00")
    assert second.startswith("3\tglass\tssalg\t")
    assert rest[:2] == ["2 of 2 lines.", "  chrF of all: 100.00"]
    file.write_text("abc\n" + "abc" * 20 + "\n", encoding="utf-8")
    assert main(["sentences", REVERSE, str(file)]) == 2
    printed = capsys.readouterr()
    assert "\tcba\t" in printed.out
    assert "error: line 2: The source has 61 tokens; reverse reads at most 13. Shorten it." in printed.err
    assert "error: 1 of 2 lines could not be run." in printed.err


def test_sentences_has_the_option(checkpoint_folder, refused_without_cuda):
    file = str(checkpoint_folder / "config.json")
    assert refused_without_cuda("sentences", file)
