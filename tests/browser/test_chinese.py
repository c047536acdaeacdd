"""A change of language in the middle of anything loses nothing, and Chinese has its own letters and whole words."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import expect_address, source_box, wait_for_charts
from tests.pages.test_language import OF_PAGES

BRANCH = OF_PAGES["step"]
FONT = "element => getComputedStyle(element).fontFamily"


@pytest.fixture
def opened(server, new_page):
    def open_one(path, language="en", **options):
        page = new_page(**options)
        turn_to(page, f"{server.url}/{path}&lang={language}" if language else f"{server.url}/")
        return page

    return open_one


def written(parameters):
    return "&".join(f"{name}={value}" for name, value in parameters.items())


def speak(page, name):
    choice = page.locator(".st-key-language_choice [role=combobox]")
    choice.scroll_into_view_if_needed()  # scrolling shuts the list
    wait_for_rest(page)
    choice.click()
    page.get_by_role("option", name=name, exact=True).click()
    wait_for_idle(page)


def heading(page, text, language):
    expect(page.get_by_role("heading", level=1)).to_have_text(text)
    comes_to(page, lambda: page.evaluate("document.documentElement.lang"), language)  # which a component says later


def stated(page):
    """The address without the language, and without the checkpoint's digest."""
    parameters = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
    return {name: value for name, value in parameters.items() if name not in ("lang", "rev")}


def states(page, parameters):
    comes_to(page, lambda: stated(page), parameters)


def test_what_one_does_outlives_a_change_of_language(opened):
    page = opened(f"step?{written(BRANCH)}")
    a_branch_outlives_it(page)
    menu_link(page, "注意力").click()
    heading(page, "注意力", "zh-CN")
    wait_for_idle(page)
    before = page.evaluate("history.length")
    speak(page, "English")
    heading(page, "Attention", "en")
    assert page.evaluate("history.length") == before
    page.go_back()  # to the page before, and its language
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("^(翻译|Translate)$"))
    wait_for_idle(page)


def a_branch_outlives_it(page):
    before = page.locator(".gf-text").all_inner_texts()
    speak(page, "中文")
    heading(page, "翻译", "zh-CN")
    states(page, BRANCH)
    assert page.locator(".gf-text").all_inner_texts() == before
    page.get_by_role("button", name="前进一步", exact=True).click()  # what the widgets send now is known
    states(page, BRANCH | {"step": "4"})
    expect(page.locator(".st-key-candidates")).to_contain_text("第 4 步")  # drawn by a fragment alone


def test_a_browser_in_chinese_gets_it_without_asking_in_a_sans_of_the_system_and_terms_are_words(opened, server):
    """Before the family's generic name, which is a serif for headings; nothing is fetched (a fixture watches)."""
    page = opened("?", language="", locale="zh-CN")
    expect(source_box(page)).to_have_value("我喜欢喝咖啡。")  # a sentence of the browser's language
    expect_address(page, model=None, src=None)
    turn_to(page, f"{server.url}/step?{written(BRANCH)}")
    heading(page, "翻译", "zh-CN")
    wait_for_charts(page)
    text = page.get_by_test_id("stMain").locator("p").first
    for element in (page.locator("h1"), text, page.locator(".main-svg text").first):
        families = element.evaluate(FONT)
        assert families.index("PingFang SC") < families.index("serif", families.index("PingFang SC"))
        assert families.startswith('"Source')
        assert all(name in families for name in ("Microsoft YaHei", "Noto Sans SC", "Noto Sans CJK SC"))
    a_term_is_underlined_only_where_it_is_a_word(page, server)


# ---------------------------------------------------------------- terms of the glossary

# Each marked word, with the word of Chinese that the browser's dictionary sees where it begins and where it ends.
MARKED = """() => {
  const words = new Intl.Segmenter("zh", { granularity: "word" });
  return [...(CSS.highlights.get("gf-term") ?? [])].map(({ startContainer: { data }, startOffset, endOffset }) => {
    const whole = [...words.segment(data)].filter(({ index, segment }) =>
      index < endOffset && index + segment.length > startOffset).map(({ segment }) => segment).join("");
    return [data.slice(startOffset, endOffset), whole];
  });
}"""
# What the dictionary takes for one word though the term is a word in it, or two that it does not know apart.
COMPOUND = re.compile("个子层")


def a_term_is_underlined_only_where_it_is_a_word(page, server):
    for path, wanted in (
        ("attention?model=zh-en&src=我喜欢喝茶。&panel=walk", {"注意力", "键", "头"}),
        ("inside?model=zh-en&src=我喜欢喝茶。&inside=model", {"形状", "参数"}),
        ("search?model=zh-en&src=我喜欢喝茶。&how=beam", {"束搜索"}),
    ):
        page.evaluate("() => CSS.highlights.delete('gf-term')")  # those of the page before
        turn_to(page, f"{server.url}/{path}")
        comes_to(page, lambda wanted=wanted: wanted <= {word for word, _ in page.evaluate(MARKED)}, True)
        marked = page.evaluate(MARKED)
        assert [pair for pair in marked if pair[0] != pair[1] and not COMPOUND.fullmatch(pair[1])] == []
