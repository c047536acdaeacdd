"""The start page stands on one screen, runs no charts, leads on by its blocks, and reads a text in its language."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, turn_to, wait_for_idle
from tests.browser.story import expect_address, source_box

FIFTEEN = "My brother and I walk to the old school every Monday morning."
BLOCKS = ".st-key-start_diagram a"
OVERFLOW = """() => { const main = document.querySelector('[data-testid="stMain"]');
  return [main.scrollHeight - innerHeight, document.documentElement.scrollWidth - innerWidth]; }"""
RUNNING = """() => document.getAnimations().filter(
  one => one.effect.target.closest(".gf-thumb, .stMarkdownBadge")).length"""
SHOWN = '() => getComputedStyle(document.querySelector(".gf-at-rest")).opacity'


def test_it_stands_on_one_screen_and_its_output_comes_piece_by_piece_once(server, new_page):
    page = new_page()
    page.emulate_media(reduced_motion="reduce")
    turn_to(page, f"{server.url}/start?model=en-fr&src={quote(FIFTEEN)}")
    expect(page.locator(".gf-thumb").first).to_be_visible()
    assert page.evaluate("window.Plotly") is None
    assert (page.evaluate(RUNNING), page.evaluate(SHOWN)) == (0, "1")  # for who wants no motion
    assert max(page.evaluate(OVERFLOW)) <= 0
    ways = page.locator(".st-key-ways a")
    for way in ways.all():
        expect(way).to_be_visible()
    assert ways.last.bounding_box()["y"] < 720
    page.set_viewport_size(PHONE)
    wait_for_idle(page)
    assert page.evaluate(OVERFLOW)[1] <= 0
    for block in page.locator(BLOCKS).all():
        box = block.bounding_box()
        assert 0 <= box["x"] <= PHONE["width"] - box["width"]
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(reduced_motion="no-preference")
    page.reload()
    page.wait_for_function(f"({RUNNING})() > 0")
    page.wait_for_function(f"({RUNNING})() === 0")
    assert page.evaluate(SHOWN) == "1"
    wait_for_idle(page)
    source_box(page).fill("We sing.")
    source_box(page).press("Enter")
    page.wait_for_function(f"({RUNNING})() > 0")  # another sentence passes again


@pytest.mark.parametrize("each", [20, pytest.param(1, marks=pytest.mark.deep)])
def test_a_block_is_reached_by_keyboard_and_what_reads_a_text_takes_it_over(server, new_page, each):
    page = new_page()
    turn_to(page, f"{server.url}/start?model=reverse&src=noon")
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
        page.go_back()
        wait_for_idle(page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Glassformer")
        expect(source_box(page)).to_have_value("noon")

    turn_to(page, f"{server.url}/start?model=en-fr")
    checkpoint, before = page.get_by_role("combobox", name="Checkpoint"), page.evaluate("history.length")
    source_box(page).fill("她喜欢茶。")
    source_box(page).press("Enter")
    wait_for_idle(page)
    expect_address(page, model="zh-en", src="她喜欢茶。")
    expect(checkpoint).to_have_value("Chinese to English (zh-en)")
    assert page.evaluate("history.length") == before + 1
    page.get_by_role("button", name="Undo").click()
    wait_for_idle(page)
    expect_address(page, model="en-fr", src="她喜欢茶。")
    page.get_by_role("button", name="Read it with Chinese to English").click()
    wait_for_idle(page)
    expect(checkpoint).to_have_value("Chinese to English (zh-en)")
