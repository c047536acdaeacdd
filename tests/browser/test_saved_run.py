"""A run that was saved as a file: opened by itself, without a network, it steps as the page does; text is text."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, turn_to

TITLES = ".gf-plot .gtitle"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved run")


@pytest.fixture
def offline(new_page):
    """A window of another visitor, without a network; what it complained of is in its list."""

    def one(path, **look):
        page = new_page(visitor="offline", **look)
        page.context.set_offline(True)
        said = []
        page.on(
            "console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None
        )
        page.goto(path.as_uri())
        expect(page.locator(TITLES).first).to_be_attached()
        return page, said

    return one


def saved(tab, server, folder, address):
    """The file that a page saves."""
    turn_to(tab, server.url + address)
    with tab.expect_download() as coming:
        tab.get_by_role("button", name="Save this run").click()
    file = folder / coming.value.suggested_filename
    coming.value.save_as(file)
    return file


def test_it_opens_and_steps_without_a_network_in_both_languages_and_themes(server, tab, folder, offline):
    file = saved(tab, server, folder, "/step?model=reverse&src=stone&step=2")
    assert file.name == "reverse_stone_step.html"
    moved = file.rename(folder / "elsewhere.html")
    page, said = offline(moved, viewport=PHONE)
    expect(page.locator(TITLES).first).to_have_text("Step 2: candidates for the next piece")
    for n in (3, 4):
        page.keyboard.press("ArrowRight")
        expect(page.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
    assert page.locator(".gf-text").inner_text() == "enot"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="中文").click()
    expect(page.locator(TITLES).first).to_have_text("第 4 步：下一个子词的候选")
    page.locator(".gf-saved-theme").click()
    expect(page.locator(".gf-chart-frame").first).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="English").click()
    live = page.get_by_role("link", name="Open this run in Glassformer").get_attribute("href")
    assert live.startswith(f"{server.url}/step?model=reverse")
    assert "src=stone" in live
    assert said == []


def test_what_a_file_says_is_never_markup(server, tab, folder, offline):
    file = saved(tab, server, folder, "/step?model=zh-en&src=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E%E6%88%91")
    page, said = offline(file)
    assert "<img src=x onerror=alert(1)>我" in page.locator("h1").inner_text()
    assert page.locator("img").count() == 0
    assert said == []
