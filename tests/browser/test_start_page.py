"""The start page in a real browser: it stands on one screen, runs no charts, and its blocks lead on and back."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, source_box

FIFTEEN = "My brother and I walk to the old school every Monday morning."
BLOCKS = ".st-key-start_diagram a"
OVERFLOW = """() => { const main = document.querySelector('[data-testid="stMain"]');
  return [main.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]; }"""


@pytest.mark.parametrize(
    "query",
    [
        f"?model=en-fr&src={quote(FIFTEEN)}",
        *(pytest.param(one, marks=pytest.mark.deep) for one in ("", "?model=reverse", "?src=I+like+tea.")),
    ],
)
def test_it_stands_on_one_screen(server, tab, query):
    turn_to(tab, f"{server.url}/start{query}")
    expect(tab.locator(BLOCKS).first).to_be_visible()
    assert max(tab.evaluate(OVERFLOW)) <= 0
    ways = tab.locator(".st-key-ways a")
    for way in ways.all():
        expect(way).to_be_visible()
    assert ways.last.bounding_box()["y"] < 720


def test_on_a_phone_nothing_runs_over_the_edge(server, new_page):
    page = new_page(viewport=PHONE, color_scheme="dark")
    open_page(page, f"{server.url}/start?model=en-fr&src={quote(FIFTEEN)}")
    expect(page.locator(BLOCKS).first).to_be_visible()
    assert page.evaluate(OVERFLOW)[1] <= 0
    for block in page.locator(BLOCKS).all():
        box = block.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]


def test_it_does_not_run_the_script_of_charts(server, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{server.url}/start?model=reverse")
    assert page.evaluate("window.Plotly") is None


@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.deep)])
def test_each_block_is_reached_by_keyboard_and_is_one_entry(server, new_page, each):
    page = new_page(fresh=True)  # a browser counts 50 entries at most, and tabs are shared
    open_page(page, f"{server.url}/start?model=reverse&src=noon")
    for place in range(0, page.locator(BLOCKS).count(), each):
        before = page.evaluate("history.length")
        block = page.locator(BLOCKS).nth(place)
        block.focus()
        there = block.get_attribute("href").partition("?")[0]
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/{there}?**")
        wait_for_idle(page)
        # Going back leaves the entries ahead, which the next one takes the place of.
        assert page.evaluate("history.length") == (before + 1 if place == 0 else before)
        expect_address(page, src="noon")
        expect(source_box(page)).to_have_value("noon")
        page.go_back()
        wait_for_idle(page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Glassformer")
        expect(source_box(page)).to_have_value("noon")


def test_a_visitor_begins_with_a_sentence_of_the_browsers_language(server, new_page):
    for locale, sentence in (("en-GB", "I like coffee."), ("zh-CN", "我喜欢喝咖啡。")):
        page = new_page(locale=locale)
        open_page(page, f"{server.url}/")
        expect(source_box(page)).to_have_value(sentence)
        expect_address(page, model=None, src=None)


def test_what_reads_a_text_takes_it_over_with_the_way_back_beside_it(server, new_page):
    page = new_page(fresh=True)  # a browser counts 50 entries at most, and tabs are shared
    open_page(page, f"{server.url}/")
    own = source_box(page).input_value()
    before = page.evaluate("history.length")
    source_box(page).fill("她喜欢茶。")
    source_box(page).press("Enter")
    wait_for_idle(page)
    expect_address(page, model="zh-en", src="她喜欢茶。")
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Chinese to English (zh-en)")
    assert page.evaluate("history.length") == before + 1
    page.reload()
    wait_for_idle(page)
    expect(source_box(page)).to_have_value("她喜欢茶。")
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Chinese to English (zh-en)")
    page.go_back()
    wait_for_idle(page)
    expect(source_box(page)).to_have_value(own)
    source_box(page).fill("她喜欢水。")
    source_box(page).press("Enter")
    wait_for_idle(page)
    page.get_by_role("button", name="Undo").click()
    wait_for_idle(page)
    expect_address(page, model="en-fr", src="她喜欢水。")
    page.get_by_role("button", name="Read it with Chinese to English").click()
    wait_for_idle(page)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Chinese to English (zh-en)")


RUNNING = """() => document.getAnimations().filter(
  one => one.effect.target.closest(".gf-thumb, .stMarkdownBadge")).length"""
SHOWN = '() => getComputedStyle(document.querySelector(".gf-at-rest")).opacity'


def test_the_output_comes_piece_by_piece_once_or_stands_at_rest_for_who_wants_no_motion(server, new_page):
    page = new_page(fresh=True)
    page.emulate_media(reduced_motion="reduce")
    open_page(page, f"{server.url}/start?model=reverse&src=noon")
    expect(page.locator(".gf-thumb").first).to_be_visible()
    assert page.evaluate(RUNNING) == 0
    assert page.evaluate(SHOWN) == "1"
    page.emulate_media(reduced_motion="no-preference")
    page.reload()
    page.wait_for_function(f"({RUNNING})() > 0")
    page.wait_for_function(f"({RUNNING})() === 0")
    assert page.evaluate(SHOWN) == "1"
    source_box(page).fill("glass")
    source_box(page).press("Enter")
    page.wait_for_function(f"({RUNNING})() > 0")  # another sentence passes again
