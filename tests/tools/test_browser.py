"""The browser that CHROME names is used, or one is found, or installed where that is allowed."""

import pytest

from tools import browser


@pytest.fixture
def no_browser(monkeypatch):
    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.setattr(browser, "_playwrights_own", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)


def test_the_chrome_variable_comes_first_and_a_wrong_one_is_not_papered_over(monkeypatch, tmp_path):
    mine = tmp_path / "my-chrome"
    mine.touch(mode=0o755)
    monkeypatch.setenv("CHROME", str(mine))
    assert browser.find_browser() == str(mine)
    monkeypatch.setenv("CHROME", str(tmp_path / "none"))
    monkeypatch.setattr(browser, "run", lambda command: pytest.fail(f"ran {command}"))
    assert browser.find_browser() is browser.ensure_browser() is None


def test_without_a_browser_one_sentence_says_what_to_do(no_browser, capsys):
    assert browser.main([]) == 1
    output = capsys.readouterr()
    assert (output.out, "--ensure" in output.err) == ("", True)


@pytest.mark.parametrize("is_debian", [False, True])
def test_debian_installs_one_by_one_and_playwright_is_asked_at_last(no_browser, monkeypatch, is_debian):
    asked = []
    monkeypatch.setattr(browser, "apt_get", lambda: ["apt-get"] if is_debian else None)
    monkeypatch.setattr(browser, "_has_cjk_font", lambda: False)
    monkeypatch.setattr(browser, "run", lambda command: asked.append(" ".join(command[1:])))
    assert browser.ensure_browser() is None
    install = "install --yes --no-install-recommends"
    debian = ["update", f"{install} chromium", f"{install} fonts-noto-cjk"]
    assert asked == [*(debian * is_debian), "-m playwright install chromium"]  # as that did not bring one
