"""Terms are underlined where they first stand on a page and explained; the page Glossary has them all."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, chart_menu, comes_to, menu_link, open_page, turn_to, wait_for_idle

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
        page = new_page(**(options or {"shared": True}))
        page.evaluate("() => CSS.highlights.delete('gf-term')")  # those of the page before
        turn_to(page, server.url + path)
        page.wait_for_function("least => CSS.highlights.get('gf-term')?.size >= least", arg=least)
        return page

    return open_one


def tip(page):
    return page.get_by_role("tooltip")


def marked(page, *wanted):
    """The marked words, once those that are wanted are among them."""
    page.wait_for_function(f"wanted => wanted.every(word => ({MARKED})().includes(word))", arg=list(wanted))
    return page.evaluate(MARKED)


def test_a_term_is_underlined_once_and_explained_under_the_mouse(opened):
    page = opened("/step?model=zh-en")
    words = marked(page, "source", "output so far", "cross-attention", "piece")
    assert len(words) == len(set(words))
    x, y = page.evaluate(MIDDLE, "cross-attention")
    page.mouse.move(x, y)
    expect(tip(page)).to_contain_text("Attention with queries from the decoder")
    page.mouse.move(5, 5)
    expect(tip(page)).to_be_hidden()


def test_data_are_never_underlined(opened):
    page = opened("/step?model=en-fr&src=The%20key%20of%20attention%20is%20a%20piece%20of%20memory.")
    marked(page, "source")
    assert page.evaluate(IN_DATA, DATA) == []


@pytest.mark.parametrize(
    ("path", "other"), [("/room", {"memory"}), ("/doctor?model=reverse", {"reveal", "reveals", "transformers"})]
)
def test_words_in_another_meaning_are_not_underlined(opened, path, other):
    page = opened(path, least=0)
    wait_for_idle(page)
    page.wait_for_timeout(1000)  # marking waits until the page is quiet
    assert not other & set(marked(page))


def test_the_keyboard_reads_definitions_and_escape_closes_them(opened):
    page = opened("/step?model=zh-en")
    marked(page, "piece")
    stop = page.get_by_role("note", name="output so far", exact=True)
    stop.focus()
    expect(tip(page)).to_contain_text("The pieces that the decoder has written")
    expect(stop).to_have_attribute("aria-describedby", tip(page).get_attribute("id"))
    page.keyboard.press("Escape")
    expect(tip(page)).to_be_hidden()
    page.keyboard.press("Tab")
    expect(tip(page)).to_be_visible()
    page.keyboard.press("Shift+Tab")
    expect(tip(page)).to_contain_text("The pieces that the decoder has written")


def test_a_finger_opens_a_definition_inside_the_window(opened):
    page = opened("/attention", visitor="touch", has_touch=True, viewport=PHONE)
    marked(page, "heads")
    page.touchscreen.tap(*page.evaluate(MIDDLE, "heads"))
    expect(tip(page)).to_contain_text("One of several attention computations side by side")
    box = tip(page).bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    page.touchscreen.tap(200, 20)
    expect(tip(page)).to_be_hidden()


def test_marks_stay_while_the_reader_steps_and_goes_to_other_pages(opened, faults):
    page = opened("/step?model=reverse&src=abcdef")
    before = marked(page, "source", "output so far")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wait_for_idle(page)
    for _ in range(60):  # marking waits until the page is quiet
        if set(before) <= set(marked(page, "source", "output so far")):
            break
        page.wait_for_timeout(250)
    else:
        pytest.fail("A term has lost its mark.")
    menu_link(page, "Masks").click()
    marked(page, "masks", "padding")
    menu_link(page, "Inside the model").click()
    marked(page, "encoder", "d_model")
    page.wait_for_function(f"() => !({MARKED})().includes('masks')")
    assert not faults


def test_the_definition_shows_above_a_large_chart_and_escape_closes_it_alone(opened):
    page = opened("/attention?panel=head&layer=1&head=1&model=reverse&src=abc")
    chart_menu(page, "Show this chart large")
    inside = "() => [...CSS.highlights.get('gf-term')].filter(r => r.startContainer.parentElement.closest('dialog'))"
    page.wait_for_function(f"() => ({inside})().length > 0")
    word = page.evaluate(f"() => ({inside})()[0].toString().toLowerCase()")
    page.mouse.move(*page.evaluate(MIDDLE, word))
    expect(tip(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(tip(page)).to_be_hidden()
    expect(page.locator("dialog[open]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_the_page_has_all_terms_and_leads_to_where_each_is_seen(opened):
    page = opened("/attention?model=reverse&src=abcdef", fresh=True)
    page.get_by_role("link", name="Glossary").click()
    count = page.locator(".gf-glossary-count")
    expect(count).to_have_text(re.compile(r"1\d\d terms"))
    page.get_by_placeholder("Find a term").fill("dot product")
    expect(page.locator(".gf-glossary-entry:visible dt")).to_contain_text(["attention score", "dot product"])
    link = page.locator(".gf-glossary-entry:visible dd a").first
    address = link.get_attribute("href")
    assert re.match(r"attention\?(?=.*src=abcdef)(?=.*panel=walk)", address)
    entries = page.evaluate("history.length")
    link.click()
    page.wait_for_url("**/attention?*panel=walk*")
    comes_to(page, lambda: page.evaluate("history.length"), entries + 1)
    wait_for_idle(page)
    expect(page.get_by_label("Sentence to translate").or_(page.get_by_label("Input"))).to_have_value("abcdef")


def test_an_address_opens_the_page_at_a_term(server, page):
    open_page(page, f"{server.url}/glossary?term=residual%20stream")
    chosen = page.locator('.gf-glossary-entry[aria-current="true"]')
    expect(chosen).to_contain_text("residual stream")
    expect(chosen).to_be_in_viewport()
    page.locator(".gf-glossary-entry dt a", has_text="residual connection").click()
    page.wait_for_url("**/glossary?*term=residual+connection*")
    expect(chosen).to_contain_text("Adds a sub-layer's input to its output")
