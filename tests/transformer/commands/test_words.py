"""The command line has the library's own words and those of extensions, each in its place."""

from types import SimpleNamespace

import pytest

from transformer import __main__ as command_line
from transformer.__main__ import COMMANDS, main
from transformer.extensions import Command, extensions, imported

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
