"""The app in Chinese, chosen in the middle of a branch: nothing is lost, and the browser knows what it shows."""

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, open_page, wait_for_idle

BRANCH = {
    "model": "reverse",
    "src": "abcdef",
    "forced": "24.16",
    "step": "3",
    "do": "zero-cross.1.2",
    "unsure": "ten",
}
FONT = "element => getComputedStyle(element).fontFamily"


@pytest.fixture
def branch(server, new_page):
    page = new_page()
    open_page(page, f"{server.url}/step?lang=en&" + "&".join(f"{name}={value}" for name, value in BRANCH.items()))
    return page


def speak(page, name):
    page.locator(".st-key-language_choice [role=combobox]").fill(name)  # a click may scroll, which shuts the list
    page.get_by_role("option", name=name, exact=True).click()
    wait_for_idle(page)


def stated(page):
    """The address without the language."""
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    return {name: value for name, value in parameters.items() if name != "lang"}


def test_a_branch_outlives_a_change_of_language(branch):
    page = branch
    before = page.locator(".gf-text").all_inner_texts()
    speak(page, "中文")
    expect(page.get_by_role("heading", level=1)).to_have_text("逐步解码")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    comes_to(page, lambda: stated(page), BRANCH)
    assert page.locator(".gf-text").all_inner_texts() == before
    page.get_by_role("button", name="前进一步", exact=True).click()  # what the widgets send now is known
    comes_to(page, lambda: stated(page), BRANCH | {"step": "4"})
    speak(page, "English")
    expect(page.get_by_role("heading", level=1)).to_have_text("Step through decoding")
    assert page.evaluate("document.documentElement.lang") == "en"
    comes_to(page, lambda: stated(page), BRANCH | {"step": "4"})


def test_chinese_is_written_in_a_sans_of_the_system(branch):
    """Before the family's generic name, which is a serif for headings; nothing is fetched (a fixture watches)."""
    speak(branch, "中文")
    for element in (branch.locator("h1"), branch.locator("p").first, branch.locator(".main-svg text").first):
        families = element.evaluate(FONT)
        assert families.index("PingFang SC") < families.index("serif", families.index("PingFang SC"))
        assert families.startswith('"Source')
        assert all(name in families for name in ("Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC"))
