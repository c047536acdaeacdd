"""`glassformer` starts the app with what was typed, knows every command, and says what is missing or unknown."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from unittest.mock import Mock

import pytest

from glassformer import APP
from glassformer.__main__ import main
from tests.source_code import ROOT
from transformer import __version__
from transformer.extensions import extensions

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]


@pytest.fixture
def started(monkeypatch):
    """What Streamlit is started with."""
    found = []
    monkeypatch.setattr(sys, "argv", ["glassformer"])
    monkeypatch.setattr("streamlit.web.cli.main", lambda **_: found.append(sys.argv))
    return found


def python(folder, *words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_it_is_the_one_that_is_installed_says_its_version_and_its_help_has_every_command_and_option(capsys):
    assert SCRIPTS == {"glassformer": "glassformer.__main__:main"}
    assert main(["-V"]) == main(["--version"]) == 0
    assert capsys.readouterr().out == f"glassformer {__version__}\n" * 2
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    said = capsys.readouterr().out
    assert (ended.value.code, said.startswith("usage: glassformer ")) == (0, True)
    commands = [one.word for extension in extensions() for one in extension.commands]
    for word in ("translate", *commands, "--checkpoints DIR", "--uploads"):
        assert f"  {word} " in said or f"  {word}\n" in said


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ([], ["--"]),
        (
            ["--checkpoints=a.b", "--server.port=9000", "--theme.base", "dark", "--uploads", "on"],
            ["--server.port=9000", "--theme.base", "dark", "--", "--checkpoints=a.b", "--uploads", "on"],
        ),
        (["--server.port", "9000", "--", "--device", "cpu"], ["--server.port", "9000", "--", "--device", "cpu"]),
    ],
)
def test_what_has_a_dot_is_streamlits_and_the_rest_the_apps(started, words, passed):
    assert main(words) == 0
    assert started == [["streamlit", "run", str(APP / "app.py"), *passed]]


def test_an_option_that_nobody_reads_is_refused(started, capsys):
    for word in ("--port", "-p", "--checkpoint=x"):
        assert main([word, "9000"]) == 2
        assert capsys.readouterr().err == f"error: {word} is no option; glassformer --help lists them.\n"
    assert started == []


def test_a_library_that_is_missing_is_named_with_what_brings_it(monkeypatch, capsys):
    brought = {"sacrebleu": "'glassformer[train]'", "tokenizers.models": "'glassformer[hf]'", "opencc": "glassformer"}
    for missing, extra in brought.items():
        error = ModuleNotFoundError(name=missing)
        monkeypatch.setattr("transformer.commands.translate._run", Mock(side_effect=error))
        assert main(["translate", "zh-en"]) == 2
        assert f"{missing} is missing; pip install {extra} brings it." in capsys.readouterr().err


def test_a_name_that_nothing_has_is_refused_with_those_that_there_are(tmp_path, monkeypatch, capsys, started):
    monkeypatch.chdir(tmp_path)
    assert main(["translate", "en-xx", "Hello"]) == 2
    said = capsys.readouterr().err
    assert "en-xx: there is no such file or folder" in said
    assert "en-fr" in said
    assert main(["translate", "reverse", "abc"]) == 0
    assert capsys.readouterr().out == "abc\tcba\n"
    for missing in ("missing.pt", "runs/missing.pt", "runs/two/model", "./zh-en/x"):
        assert main([missing]) == 2
        assert f"{missing}: there is no such file or folder" in capsys.readouterr().err
    assert started == []


def test_a_word_that_nothing_is_called_is_answered_with_the_nearest(tmp_path, monkeypatch, capsys, started):
    monkeypatch.chdir(tmp_path)
    nearest = {"zh-em": "did you mean zh-en?", "trian": "did you mean train?", "xyz": "glassformer --help lists the"}
    for typed, remedy in nearest.items():
        assert main([typed]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"error: {typed}: there is no command, model or file of this name; {remedy}")
        assert (started, said.count("\n")) == ([], 1)
    (tmp_path / typed).mkdir()  # a folder needs no suffix
    assert main([typed]) == 0
    assert started[0][-4:] == ["--checkpoints", str(tmp_path), "--open", typed]


def test_another_package_called_transformer_is_named_with_a_remedy(tmp_path):
    (tmp_path / "transformer").mkdir()
    (tmp_path / "transformer" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    hidden = python(tmp_path, "-m", "glassformer", "--version")
    assert (hidden.returncode, hidden.stdout, hidden.stderr.count("\n")) == (1, "", 1)
    assert f"{Path('transformer') / '__init__.py'}" in hidden.stderr
    assert "is another package called transformer" in hidden.stderr
    remedied = python(tmp_path, "-P", "-m", "glassformer", "--version")
    assert (remedied.returncode, remedied.stdout) == (0, f"glassformer {__version__}\n")
