"""Terms are underlined once, never in data, and explained to mouse, finger and keyboard; Glossary has all."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, chart_menu, menu_link, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest

MARKED = "() => [...(CSS.highlights.get('gf-term') ?? [])].map(range => range.toString().toLowerCase())"
# Where the data of a run stand: pieces, the sentence, the output.
DATA = ".gf-pieces, .gf-text, bdi, input, button, a, svg, code"
IN_DATA = """data => [...CSS.highlights.get("gf-term")]
  .filter(range => range.startContainer.parentElement.closest(data))
  .map(range => range.toString())"""
MIDDLE = """word => {
  const range = [...CSS.highlights.get("gf-term")].find(one => one.toString().toLowerCase() === word);
  range.startContainer.parentElement.scrollIntoView({ block: "center" });
  const { x, y, width, height } = range.getClientRects()[0];
  return [x + width / 2, y + height / 2];
}"""


@pytest.fixture
def opened(server, new_page):
    def open_one(path, *, least=4, **options):
        page = new_page(**options)
        page.evaluate("() => CSS.highlights.delete('gf-term')")  # those of the page before
        turn_to(page, server.url + path)
        page.wait_for_function("least => CSS.highlights.get('gf-term')?.size >= least", arg=least)
        return page

    return open_one


def middle(page, word):
    """Where a marked word is, once the page stands still."""
    wait_for_rest(page)
    return page.evaluate(MIDDLE, word)


def tip(page):
    return page.get_by_role("tooltip")


def marked(page, *wanted):
    """The marked words, once those that are wanted are among them."""
    page.wait_for_function(f"wanted => wanted.every(word => ({MARKED})().includes(word))", arg=list(wanted))
    return page.evaluate(MARKED)


def test_a_term_is_underlined_once_explained_to_mouse_and_keyboard_and_found_on_its_page(opened, server):
    page = opened("/step?model=en-fr&src=The%20key%20of%20attention%20is%20a%20piece%20of%20memory.")
    words = marked(page, "source", "token", "cross-attention")
    assert len(words) == len(set(words))
    assert page.evaluate(IN_DATA, DATA) == []
    page.mouse.move(*middle(page, "cross-attention"))
    expect(tip(page)).to_contain_text("Attention with queries from the decoder")
    page.mouse.move(5, 5)
    expect(tip(page)).to_be_hidden()
    stop = page.get_by_role("note", name="source", exact=True)
    stop.focus()
    expect(tip(page)).to_contain_text("The sentence that the encoder reads")
    expect(stop).to_have_attribute("aria-describedby", tip(page).get_attribute("id"))
    page.keyboard.press("Escape")
    expect(tip(page)).to_be_hidden()
    page.keyboard.press("Tab")
    expect(tip(page)).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_for_idle(page)
    marked(page, *words)  # once the page is quiet
    menu_link(page, "Masks").click()
    marked(page, "masks", "padding")
    the_page_has_all_terms_opens_at_one_and_leads_to_where_each_is_seen(server, page)


def test_a_definition_shows_above_a_large_chart_and_under_a_finger(opened, server):
    page = opened("/attention?panel=head&layer=1&head=1&model=reverse&src=abc", visitor="touch", has_touch=True)
    chart_menu(page, "Show this chart large")
    page.locator("dialog[open]").get_by_role("button", name="How to read this").click()
    inside = "() => [...CSS.highlights.get('gf-term')].filter(r => r.startContainer.parentElement.closest('dialog'))"
    page.wait_for_function(f"() => ({inside})().length > 0")
    word = page.evaluate(f"() => ({inside})()[0].toString().toLowerCase()")
    page.mouse.move(*middle(page, word))
    expect(tip(page)).to_be_visible()
    page.keyboard.press("Escape")  # closes it alone
    expect(tip(page)).to_be_hidden()
    expect(page.locator("dialog[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.set_viewport_size(PHONE)
    page.evaluate("() => CSS.highlights.delete('gf-term')")
    turn_to(page, f"{server.url}/attention?panel=overview")
    marked(page, "heads")
    page.touchscreen.tap(*middle(page, "heads"))
    expect(tip(page)).to_contain_text("One of several attention computations side by side")
    box = tip(page).bounding_box()
    assert 0 <= box["x"] <= PHONE["width"] - box["width"]
    page.touchscreen.tap(200, 20)
    expect(tip(page)).to_be_hidden()


def the_page_has_all_terms_opens_at_one_and_leads_to_where_each_is_seen(server, page):
    turn_to(page, f"{server.url}/glossary?model=reverse&src=abcdef&term=residual%20stream")
    chosen = page.locator('.gf-glossary-entry[aria-current="true"]')
    expect(chosen).to_contain_text("residual stream")
    expect(chosen).to_be_in_viewport()
    page.locator(".gf-glossary-entry dt a", has_text="residual connection").click()
    page.wait_for_url("**/glossary?*term=residual+connection*")
    expect(chosen).to_contain_text("Adds a sub-layer's input to its output")
    expect(page.locator(".gf-glossary-count")).to_have_text(re.compile(r"1\d\d terms"))
    page.get_by_placeholder("Find a term").fill("dot product")
    expect(page.locator(".gf-glossary-entry:visible dt")).to_contain_text(["attention score", "dot product"])
    link = page.locator(".gf-glossary-entry:visible dd a").first
    assert re.match(r"attention\?(?=.*src=abcdef)(?=.*panel=walk)", link.get_attribute("href"))
    link.click()
    page.wait_for_url("**/attention?*panel=walk*")
    wait_for_idle(page)
    expect(page.get_by_label("Input", exact=True)).to_have_value("abcdef")
