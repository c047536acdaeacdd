"""Finding a browser. Installing one is tried by CI itself, on a machine without."""

import pytest

from tools import browser


@pytest.fixture
def no_browser(monkeypatch):
    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.setattr(browser, "_playwrights_own", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)


def test_chrome_variable_comes_first(monkeypatch, tmp_path):
    mine = tmp_path / "my-chrome"
    mine.touch(mode=0o755)
    monkeypatch.setenv("CHROME", str(mine))
    assert browser.find_browser() == str(mine)


def test_a_wrong_chrome_variable_is_not_papered_over(monkeypatch, tmp_path):
    monkeypatch.setenv("CHROME", str(tmp_path / "none"))
    assert browser.find_browser() is None


def test_without_a_browser_one_sentence_says_what_to_do(no_browser, capsys):
    assert browser.main([]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "--ensure" in output.err


def test_a_wrong_chrome_variable_installs_nothing(no_browser, monkeypatch):
    monkeypatch.setenv("CHROME", "/none")
    monkeypatch.setattr(browser, "run", lambda command: pytest.fail(f"ran {command}"))
    assert browser.ensure_browser() is None


def test_without_apt_playwright_is_asked_to_install(no_browser, monkeypatch):
    asked = []
    monkeypatch.setattr(browser, "run", lambda command: asked.append(command))
    assert browser.ensure_browser() is None
    assert [command[1:] for command in asked] == [["-m", "playwright", "install", "chromium"]]


def test_debian_installs_browser_and_font_one_by_one(no_browser, monkeypatch):
    asked = []
    monkeypatch.setattr(browser, "apt_get", lambda: ["apt-get"])
    monkeypatch.setattr(browser, "_has_cjk_font", lambda: False)
    monkeypatch.setattr(browser, "run", lambda command: asked.append(" ".join(command[1:])))
    browser.ensure_browser()
    install = "install --yes --no-install-recommends"
    assert asked[:3] == ["update", f"{install} chromium", f"{install} fonts-noto-cjk"]
    assert asked[3:] == ["-m playwright install chromium"]  # as that did not bring one
