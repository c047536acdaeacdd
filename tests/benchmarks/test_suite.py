"""The benchmarks stay few and described, and their harness compares sides fairly: in turns, by medians and ratios."""

import re

import pytest

from benchmarks.__main__ import CLAIMS, README, about, main
from benchmarks.harness import Comparison, Settings, percentile, shown, table, timed, turns, worker
from tests.source_code import ROOT

FOLDER = ROOT / "benchmarks"
MOST_LINES, MOST_LINES_OF_README = 2_500, 250


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_suite_and_its_page_are_small():
    assert sum(map(lines, FOLDER.glob("*.py"))) <= MOST_LINES
    assert lines(FOLDER / "README.md") <= MOST_LINES_OF_README


def test_each_claim_has_a_module_and_a_section_and_no_other_module_is_one(capsys):
    main(["--list"])
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    measured = {path.stem for path in FOLDER.glob("*.py") if "\ndef measure(" in path.read_text(encoding="utf-8")}
    sections = re.findall(r"^## .*\(`(\w+)`\)$", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == list(CLAIMS) == sections
    assert measured == set(CLAIMS) > set(README)
    assert all(about(claim).endswith(".") for claim in CLAIMS)


def test_the_readme_has_the_table_that_the_suite_writes(tmp_path, monkeypatch, capsys):
    rows = [Comparison(what=name, ours=[1.0], headline=name != "more") for name in (*README, "more")]
    monkeypatch.setattr("benchmarks.app_start.measure", lambda _: rows)
    main(["app_start", "--markdown", str(tmp_path / "table.md")])
    assert "| more |" in capsys.readouterr().out
    said, _, written = (tmp_path / "table.md").read_text(encoding="utf-8").partition("\n\n")
    assert said.startswith("`python -m benchmarks app_start`, ")
    for readme in ("README.md", "README.zh.md"):
        text = (ROOT / readme).read_text(encoding="utf-8")
        kept = re.findall(r"\n\n(\|[^\n]*\|\n\|(?:---\|){7}\n(?:\|.*\|\n)+)", text)
        assert [len(table.splitlines()) for table in kept] == [len(written.splitlines())], readme
        assert "`python -m benchmarks`" in text


def test_a_name_that_is_none_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["speed"])
    assert "no claim speed; there are app_start, " in capsys.readouterr().err
    with pytest.raises(SystemExit, match=r"gpt9: there is only zh-en, gpt2\."):
        Settings(only=("gpt9",)).chosen(["zh-en", "gpt2"])


def test_sides_work_in_turns_every_other_turn_backwards_and_warming_up_does_not_count():
    worked = []
    sides = {name: lambda name=name: worked.append(name) or len(worked) for name in "abc"}
    assert turns(sides, 2, warm_up=1) == {"a": [4, 9], "b": [5, 8], "c": [6, 7]}
    assert "".join(worked) == "cba" + "abc" + "cba"


def test_a_row_has_medians_and_the_ratio_of_each_turn():
    """The machine was three times as slow in the last turn, which no ratio of medians would forgive."""
    times = Comparison(what="start", ours=[2.0, 3.0, 9.0], peer=[1.0, 2.0, 6.0], peer_name="imports", aim="at most 2")
    assert times.ratios() == [2.0, 1.5, 1.5]
    assert times.row() == "| start | 3.00 s | 2.00 s, imports | **1.50** times as long | 1.50 to 2.00 | 3 | at most 2 |"
    faster = Comparison(what="a", ours=[1.0], peer=[4.0], more=True)
    rate = Comparison(what="a", ours=[8.0], peer=[4.0], rate=True, more=True)
    assert (faster.ratios(), rate.ratios()) == ([4.0], [2.0])
    assert Comparison(what="a", ours=[0.0, 2.0], peer=[4.0, 4.0]).ratios() == [0.0, 0.5]
    assert Comparison(what="a", ours=[1.0, 2.0], peer=[0.0, 4.0]).ratios() == []
    alone = Comparison(what="memory", ours=[380.0, 402.4], unit="MB")
    assert alone.row() == "| memory | 391 MB |  |  | 380 MB to 402 MB | 2 |  |"
    assert table([times, alone]).splitlines()[1] == "|---|---|---|---|---|---|---|"
    with pytest.raises(ValueError, match="zip"):
        Comparison(what="a", ours=[1.0, 2.0], peer=[1.0]).ratios()


def test_numbers_have_the_digits_that_count_and_a_percentile_is_a_value_that_occurred():
    assert [shown(value, "s") for value in (0, 0.00123, 0.123, 1.234, 12.34, 1234.5)] == [
        "0 s", "0.001 s", "0.12 s", "1.23 s", "12.3 s", "1,234 s",
    ]  # fmt: skip
    assert percentile([float(n) for n in range(1, 101)], 0.95) == 95
    assert (percentile([7.0], 0.95), percentile([1.0, 2.0, 3.0], 0.5)) == (7, 2)


def test_work_is_timed_until_its_time_is_over():
    worked = []
    assert timed(lambda: worked.append(1)) >= 0
    assert len(worked) == 1
    timed(lambda: worked.append(1), 0.01)
    assert len(worked) > 2


def test_a_side_in_its_own_process_answers_and_says_why_it_failed(tmp_path, monkeypatch):
    side = "def side(name, given):\n    print('noise')\n    return lambda asked: [name, given, 10 // asked]\n"
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "fake_side.py").write_text(side, encoding="utf-8")
    (folder / "__init__.py").write_text(f"__path__.append({str(FOLDER)!r})\n", encoding="utf-8")
    monkeypatch.setattr("benchmarks.harness.ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with worker("fake_side", "ours", {"a": 1}) as ask:
        reply = ask(5)
        assert reply.said == ["ours", {"a": 1}, 2]
        assert reply.wall >= 0
        assert reply.peak_mb > 1
        with pytest.raises(RuntimeError, match=r"(?s)ours of fake_side has failed.*ZeroDivisionError"):
            ask(0)
