from pathlib import Path

import pytest

from transformer.__main__ import main

REVERSE = str(Path(__file__).parents[3] / "checkpoints" / "reverse")


@pytest.mark.parametrize(("line", "status"), [("ABC, d!", 2), ("abcde", 0)])
def test_a_line_that_stands_in_the_file_but_for_case_and_punctuation_is_refused(tmp_path, capsys, line, status):
    pairs = tmp_path / "train.tsv"
    pairs.write_text("abcd\tdcba\n", encoding="utf-8")
    assert main(["translate", REVERSE, line, "--unseen-in", str(pairs)]) == status
    printed = capsys.readouterr()
    assert ("train.tsv already contains 1 of the 1 sentences" in printed.err) == (status == 2)
    assert ("edcba" in printed.out) == (status == 0)
