"""What tests of several replicas start is found, or installed where that is allowed."""

import pytest

from tools import programs


def test_what_is_missing_is_named_with_the_remedy(monkeypatch, capsys):
    assert programs.main([]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(programs, "apt_get", lambda: None)
    for asked in ([], ["--ensure"]):
        assert programs.main(asked) == 1
        assert "need redis-server and haproxy: install the packages." in capsys.readouterr().err


@pytest.mark.parametrize("there", [(), ("haproxy",)])
def test_only_what_is_missing_is_installed(monkeypatch, there):
    ran = []
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: name if name in there else None)
    monkeypatch.setattr(programs, "apt_get", lambda: ["apt-get"])
    monkeypatch.setattr(programs, "run", ran.append)
    programs.ensure()
    assert ran[-1][4:] == [name for name in ("redis-server", "haproxy") if name not in there]
