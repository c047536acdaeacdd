"""A search's tree is readable and opens what is clicked; draws are stopped and opened."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, click_chart, comes_to, overlaps, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN, address, browser_step, expect_address

TREE = "search_tree"
_CHART = f"document.querySelector('.st-key-{TREE} .js-plotly-plot')"
# The last mark of a kind, in the units of the axes.
_MARK = f"""symbol => {{
  const trace = {_CHART}._fullData.find(one => one.mode === "markers" && one.marker.symbol === symbol);
  return [trace.x.at(-1), trace.y.at(-1)]; }}"""
_MARKS = f"""() => {_CHART}._fullData
  .filter(one => one.mode === "markers").reduce((count, one) => count + one.x.length, 0)"""
_WIDE = "() => [document.querySelector('.st-key-search_tree .main-svg').getBoundingClientRect().width, innerWidth]"


def test_a_tree_opens_what_is_clicked_and_draws_are_stopped_and_opened(server, new_page):
    page = new_page(viewport={"width": 1280, "height": 1100})
    turn_to(page, f"{server.url}/search?how=beam&beam=5&src={FIFTEEN}&step=9")
    expect(page.locator(f".st-key-{TREE} .main-svg").first).to_be_visible()
    wait_for_rest(page)
    names, pairs = overlaps(page, f".st-key-{TREE} .textpoint text", (3, 3))
    assert names > 50
    assert len({name for pair in pairs for name in pair}) <= 0.25 * names  # of what was dropped just now
    assert page.evaluate(_WIDE)[0] <= 960  # it does not scroll
    whole = page.evaluate(_MARKS)
    page.get_by_role("radio", name="Up to this step").click()
    wait_for_idle(page)
    comes_to(page, lambda: page.evaluate(_MARKS) < whole, True)
    before = page.evaluate(_MARKS)
    page.get_by_role("button", name="Next step").click()
    wait_for_idle(page)
    page.locator(f".st-key-{TREE}").get_by_role("button", name="How to read this").click()
    expect(page.get_by_text(re.compile(r"Step 10: \d+ of [\d,]+ continuations were kept"))).to_be_visible()
    comes_to(page, lambda: page.evaluate(_MARKS) > before, True)

    turn_to(page, f"{server.url}/search?model=reverse&src=glasses&how=beam&beam=3&step=3")
    expect(page.locator(f".st-key-{TREE} .main-svg").first).to_be_visible()
    click_chart(page, TREE, *page.evaluate(_MARK, "x-thin-open"))  # what was dropped
    comes_to(page, lambda: "forced" in address(page), True)
    page.get_by_role("button", name="Search without the forced beginning").click()
    wait_for_idle(page)
    comes_to(page, lambda: "forced" in address(page), False)
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wait_for_rest(page)
    drawn, window = page.evaluate(_WIDE)
    assert drawn > window  # it scrolls, alone
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
    page.set_viewport_size({"width": 1280, "height": 1100})
    wait_for_idle(page)
    click_chart(page, TREE, *page.evaluate(_MARK, "square"))  # an output
    comes_to(page, lambda: "result" in address(page) or "forced" in address(page), True)
    page.get_by_role("link", name="Step through the output above").click()
    wait_for_idle(page)
    expect(page.get_by_role("heading", name="Translate")).to_be_attached()
    assert browser_step(page) > 1
    draws_are_stopped_and_opened(server, page)


def draws_are_stopped_and_opened(server, page):
    turn_to(page, f"{server.url}/search?search=draws&draws=200&try_temp=1.1&src={FIFTEEN}")
    page.get_by_role("button", name="Draw 200 times").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    wait_for_idle(page)  # else a message of the fragment that has stopped may meet another page
    page.get_by_text("20 draws", exact=True).click()
    wait_for_idle(page)
    page.get_by_role("button", name="Draw 20 times").click()
    expect(page.locator(".st-key-search_draws .gtitle")).to_contain_text("in 20 draws", timeout=60_000)
    wait_for_idle(page)
    page.locator(".st-key-search_draws .js-plotly-plot .nsewdrag").click(position={"x": 200, "y": 12})
    wait_for_idle(page)
    link = page.get_by_role("link", name="Step through this draw")
    expect(link).to_be_visible()
    seed = address(page)["opened_seed"]
    link.click()
    wait_for_idle(page)
    expect_address(page, how="sampling", seed=seed)
