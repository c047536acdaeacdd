"""The browser that CHROME names and what tests of replicas start is found, or installed where that is allowed."""

import pytest

from tools import browser, programs


@pytest.fixture
def nothing_there(monkeypatch):
    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.setattr(browser, "_playwrights_own", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(programs, "apt_get", lambda: None)


@pytest.fixture
def asked(monkeypatch):
    """What would be installed, in commands."""
    found = []
    for module in (browser, programs):
        monkeypatch.setattr(module, "run", lambda command: found.append(" ".join(command[1:])))
    return found


def test_the_chrome_variable_comes_first_and_a_wrong_one_is_not_papered_over(monkeypatch, tmp_path, asked):
    mine = tmp_path / "my-chrome"
    mine.touch(mode=0o755)
    monkeypatch.setenv("CHROME", str(mine))
    assert browser.find_browser() == str(mine)
    monkeypatch.setenv("CHROME", str(tmp_path / "none"))
    assert browser.find_browser() is browser.ensure_browser() is None
    assert asked == []


@pytest.mark.parametrize("is_debian", [False, True])
def test_debian_installs_one_by_one_and_playwright_is_asked_at_last(nothing_there, monkeypatch, asked, is_debian):
    monkeypatch.setattr(browser, "apt_get", lambda: ["apt-get"] if is_debian else None)
    monkeypatch.setattr(browser, "_has_cjk_font", lambda: False)
    assert browser.ensure_browser() is None
    install = "install --yes --no-install-recommends"
    debian = ["update", f"{install} chromium", f"{install} fonts-noto-cjk"]
    assert asked == [*(debian * is_debian), "-m playwright install chromium"]  # as that did not bring one


@pytest.mark.parametrize("there", [(), ("haproxy",)])
def test_of_programs_only_what_is_missing_is_installed(monkeypatch, asked, there):
    monkeypatch.setattr(programs.shutil, "which", lambda name, path=None: name if name in there else None)
    monkeypatch.setattr(programs, "apt_get", lambda: ["apt-get"])
    programs.ensure()
    missing = [name for name in ("redis-server", "haproxy") if name not in there]
    assert asked[-1].split()[3:] == missing


def test_what_is_missing_is_named_with_the_remedy(nothing_there, capsys):
    for main, arguments, said in (
        (browser.main, [], "--ensure"),
        (programs.main, [], "need redis-server and haproxy: install the packages."),
        (programs.main, ["--ensure"], "need redis-server and haproxy: install the packages."),
    ):
        assert main(arguments) == 1
        output = capsys.readouterr()
        assert (output.out, said in output.err) == ("", True)


def test_where_all_is_there_nothing_is_said(capsys):
    assert programs.main([]) == 0
    assert capsys.readouterr().err == ""
