"""How pieces are chosen, in a real browser: the tree and its clicks, sliders that only look, draws, Cancel."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN, address, browser_step, expect_address

TREE = ".st-key-search_tree"
# Where the last mark of a kind is on the screen.
_MARK = """symbol => { const chart = document.querySelector(".st-key-search_tree .js-plotly-plot");
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  const trace = chart._fullData.find(one => one.mode === "markers" && one.marker.symbol === symbol);
  const last = trace.x.length - 1;
  const x = xaxis._offset + xaxis.d2p(trace.x[last]), y = yaxis._offset + yaxis.d2p(trace.y[last]);
  return [box.left + x, box.top + y]; }"""
_MARKS = """() => document.querySelector(".st-key-search_tree .js-plotly-plot")._fullData
  .filter(one => one.mode === "markers").reduce((count, one) => count + one.x.length, 0)"""
# Letters of pieces that lie over each other, by the room that they really take, and how many there are.
_NAMES = """() => [...document.querySelectorAll(".st-key-search_tree .textpoint text")]
  .filter(text => text.textContent).map(text => text.getBoundingClientRect())
  .map(box => [box.left, box.top, box.right, box.bottom])"""
_WIDE = "() => [document.querySelector('.st-key-search_tree .main-svg').getBoundingClientRect().width, innerWidth]"


def open_search(page, server, query):
    turn_to(page, f"{server.url}/search?{query}")
    return page


def click_mark(page, symbol):
    page.locator(TREE).scroll_into_view_if_needed()
    wait_for_rest(page)
    place = page.evaluate(_MARK, symbol)
    page.mouse.move(*place)
    page.mouse.click(*place)
    page.mouse.move(0, 0)
    wait_for_idle(page)


def overlapping(boxes):
    """How many of some boxes share room with another."""
    return sum(
        any(
            a is not b and min(a[2], b[2]) - max(a[0], b[0]) > 3 and min(a[3], b[3]) - max(a[1], b[1]) > 3
            for b in boxes
        )
        for a in boxes
    )


def test_the_tree_is_readable_moves_with_the_step_and_opens_what_is_clicked(server, new_page):
    page = new_page(viewport={"width": 1280, "height": 1100}, shared=True)
    open_search(page, server, f"how=beam&beam=5&src={FIFTEEN}&step=9")
    expect(page.locator(f"{TREE} .main-svg").first).to_be_visible()
    wait_for_rest(page)
    names = page.evaluate(_NAMES)
    assert len(names) > 50
    assert overlapping(names) <= 0.25 * len(names)  # those of what was dropped at this step stand close
    assert page.evaluate(_WIDE)[0] <= 960  # it does not scroll
    screenshot(page, "search-tree")
    whole = page.evaluate(_MARKS)

    page.get_by_role("radio", name="Up to this step").click()
    wait_for_idle(page)
    comes_to(page, lambda: page.evaluate(_MARKS) < whole, True)
    before = page.evaluate(_MARKS)
    page.get_by_role("button", name="Next step").click()
    wait_for_idle(page)
    expect(page.get_by_text(re.compile(r"Step 10: \d+ of [\d,]+ continuations were kept"))).to_be_visible()
    comes_to(page, lambda: page.evaluate(_MARKS) > before, True)

    page.get_by_role("radio", name="Up to the last result").click()
    wait_for_idle(page)
    click_mark(page, "square")
    comes_to(page, lambda: "result" in address(page) or "forced" in address(page), True)
    page.get_by_role("link", name="Step through the output above").click()
    wait_for_idle(page)
    expect(page.get_by_role("heading", name="Step through decoding")).to_be_visible()
    assert browser_step(page) > 1


def test_what_was_dropped_opens_as_a_forced_beginning_and_a_phone_scrolls_the_tree_alone(server, tab):
    page = open_search(tab, server, "model=reverse&src=glasses&how=beam&beam=3&step=3")
    expect(page.locator(f"{TREE} .main-svg").first).to_be_visible()
    click_mark(page, "x-thin-open")
    comes_to(page, lambda: "forced" in address(page), True)
    page.get_by_role("button", name="Search without the forced beginning").click()
    wait_for_idle(page)
    comes_to(page, lambda: "forced" in address(page), False)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wait_for_rest(page)
    drawn, window = page.evaluate(_WIDE)
    assert drawn > window
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
    screenshot(page, "search-tree-phone", whole=True)


def test_sliders_only_look_until_the_run_takes_them(server, tab):
    page = open_search(tab, server, "model=reverse&src=glasses&search=sampling")
    expect(page.locator(".st-key-search_before .main-svg").first).to_be_visible()
    slider = page.locator(".st-key-try_temperature").get_by_role("slider")
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    wait_for_idle(page)
    expect_address(page, try_temp="1.2")
    assert "how" not in address(page)
    screenshot(page, "search-before", whole=True)
    page.get_by_role("button", name="Use these settings").click()
    wait_for_idle(page)
    expect_address(page, how="sampling", temp="1.2")
    assert "try_temp" not in address(page)


def test_draws_are_stopped_begun_again_and_opened(server, tab):
    page = open_search(tab, server, f"search=draws&draws=200&try_temp=1.1&src={FIFTEEN}")
    page.get_by_role("button", name="Draw 200 times").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    page.get_by_text("20 draws", exact=True).click()
    page.get_by_role("button", name="Draw 20 times").click()
    expect(page.get_by_text("20 draws gave")).to_be_visible(timeout=60_000)
    wait_for_idle(page)
    chart = page.locator(".st-key-search_draws .main-svg").first
    expect(chart).to_be_visible()
    page.locator(".st-key-search_draws .js-plotly-plot .nsewdrag").click(position={"x": 200, "y": 12})
    wait_for_idle(page)
    link = page.get_by_role("link", name="Step through this draw")
    expect(link).to_be_visible()
    screenshot(page, "search-draws", whole=True)
    seed = address(page)["opened_seed"]
    link.click()
    wait_for_idle(page)
    expect_address(page, how="sampling", seed=seed)


def test_a_draft_is_chosen_stepped_through_and_timed(server, tab):
    page = open_search(tab, server, f"search=drafts&src={FIFTEEN}")
    chart = page.locator(".st-key-search_drafts")
    expect(chart.locator(".main-svg").first).to_be_visible()
    expect(chart.get_by_text(re.compile("The whole model made 1 pass instead of"))).to_be_visible()
    page.get_by_role("combobox", name="Draft", exact=True).click()
    page.get_by_role("option", name="Fewer layers").click()
    wait_for_idle(page)
    expect_address(page, draft="layers")
    comes_to(page, lambda: chart.get_by_text("Round 2", exact=True).count() > 0, True)
    for _ in range(2):
        page.get_by_role("button", name="Next step").click()
    expect(chart.get_by_text(re.compile("Step 3: "))).to_be_visible()
    screenshot(page, "search-drafts", whole=True)
    page.get_by_role("button", name="Measure the time on this machine").click()
    expect(page.get_by_text(re.compile("One piece at a time"))).to_be_visible(timeout=60_000)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wait_for_rest(page)
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
    screenshot(page, "search-drafts-phone", whole=True)
