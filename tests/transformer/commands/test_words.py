"""Commands have words and options of their own, and what goes wrong around one ends in one sentence."""

import io
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.test_checkpoints import FOLDER
from transformer import __main__ as command_line
from transformer.__main__ import COMMANDS, main
from transformer.extensions import Command, extensions, imported

REVERSE = str(FOLDER / "reverse")
posix = pytest.mark.skipif(sys.platform == "win32", reason="limits and /dev/full are of POSIX systems")
ALL = sorted(COMMANDS + tuple(one for extension in extensions() for one in extension.commands))


def test_each_command_has_a_place_and_a_word_of_its_own():
    assert len({one.place for one in ALL}) == len({one.word for one in ALL}) == len(ALL)


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.word)
def test_each_command_declares_its_options(one, capsys):
    assert callable(imported(one.add))
    with pytest.raises(SystemExit):
        main([one.word, "--help"])
    assert f"usage: python -m transformer {one.word}" in capsys.readouterr().out


def test_a_command_is_imported_only_when_it_is_called(monkeypatch, capsys):
    gone = SimpleNamespace(commands=(Command(1, "first", "what cannot be imported", "nowhere.to_be_found:add"),))
    monkeypatch.setattr(command_line, "extensions", lambda: (gone,))
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert said.index("first") < said.index("translate")
    assert "doctor" not in said
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        main(["first"])


def test_a_line_or_an_argument_that_cannot_be_read_costs_no_other(monkeypatch, capsys):
    content = b"abc\n\n" + b"a" * 5_000 + b"\nd\xffe\n" + b"xyz" * 60 + b"\ncab\r\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))
    assert main(["translate", REVERSE]) == 2
    printed = capsys.readouterr()
    assert printed.out.splitlines() == ["abc\tcba", "cab\tbac"]
    *lines, last = printed.err.splitlines()
    for error, n, said in zip(lines, (3, 4, 5), ("characters", "not UTF-8", "tokens"), strict=True):
        assert error.startswith(f"error: line {n}:")
        assert said in error
    assert last == "error: 3 of 5 lines could not be translated."
    assert main(["translate", REVERSE, "abc", "d\udcffe"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "abc\tcba\n"
    assert "line 2: the line is not UTF-8" in printed.err


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_disk_is_said_and_a_first_load_imports_no_compiler():
    """torch's decompositions bring sympy along, which costs seconds at the start of a command or the app."""
    command = [sys.executable, "-X", "importtime", "-m", "transformer", "translate", REVERSE, "abc"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=FOLDER.parent, check=False)
    assert done.returncode == 2
    assert "error: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
    imported = re.findall(r"\| *(transformer\.checkpoint\.load|sympy)$", done.stderr, re.MULTILINE)
    assert imported == ["transformer.checkpoint.load"]


@pytest.mark.parametrize(("line", "status"), [("ABC, d!", 2), ("abcde", 0)])
def test_a_line_that_stands_in_the_file_but_for_case_and_punctuation_is_refused(tmp_path, capsys, line, status):
    (tmp_path / "train.tsv").write_text("abcd\tdcba\n", encoding="utf-8")
    assert main(["translate", REVERSE, line, "--unseen-in", str(tmp_path / "train.tsv")]) == status
    printed = capsys.readouterr()
    assert ("train.tsv already contains 1 of the 1 sentences" in printed.err) == (status == 2)
    assert ("edcba" in printed.out) == (status == 0)
