"""The residual stream and the logit lens in a real browser: clicks, both themes, a phone, a long sentence."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import browser_step, expect_address, wait_for_charts

CHARTS = {
    "lens": ("lens_table", "lens_curves", "lens_map"),
    "stream": ("stream_size", "stream_kept", "stream_added", "stream_norm", "stream_strip"),
}
LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 2
_PLACE = """([key, x, y]) => { const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(y)]; }"""
# The right-most ends of what is written into cells, and the cells' own width, in pixels.
_CELLS = """() => { const chart = document.querySelector(".st-key-lens_table .js-plotly-plot");
  const { xaxis } = chart._fullLayout;
  return [xaxis._length / 5, ...[...chart.querySelectorAll(".annotation-text")].map(
    (text) => text.getBoundingClientRect().width)]; }"""


def open_part(page, server, query):
    turn_to(page, f"{server.url}/inside{query}")
    wait_for_charts(page)


def click(page, key, x, y):
    page.locator(f".st-key-{key}").scroll_into_view_if_needed()
    wait_for_rest(page)
    left, top = page.evaluate(_PLACE, [key, x, y])
    page.mouse.move(left, top)
    page.mouse.click(left, top)
    wait_for_idle(page)


def test_a_click_on_the_map_goes_to_its_step_and_one_on_a_token_chooses_it(server, page):
    open_part(page, server, "?model=reverse&src=abcdef&inside=lens")
    click(page, "lens_map", 3.3, 1.3)
    comes_to(page, lambda: browser_step(page), 4)
    expect_address(page, step="4")
    expect(page.locator(".st-key-lens_table .gtitle")).to_contain_text("Step 4")
    open_part(page, server, "?model=reverse&src=abcdef&inside=stream")
    low = page.evaluate("() => document.querySelector('.st-key-stream_norm .js-plotly-plot')._fullData[1].y[2]")
    click(page, "stream_norm", 2, low)
    expect_address(page, key="3")
    expect(page.locator(".st-key-stream_added .gtitle")).to_contain_text("stream of c")


@pytest.mark.parametrize("part", ["lens", pytest.param("stream", marks=pytest.mark.deep)])
def test_nothing_overflows(server, tab, part):
    open_part(tab, server, f"?inside={part}&step=9&side=target&src={LONG}")
    if part == "lens":
        tab.get_by_role("radiogroup", name="Read after").get_by_text("Each sub-layer", exact=True).click()
    for scheme, width in in_both_windows(tab):
        if part == "lens":
            cell, *written = tab.evaluate(_CELLS)
            assert max(written) <= cell + 4
        main = tab.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        for key in CHARTS[part]:
            box = tab.locator(f".st-key-{key} .main-svg").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        screenshot(tab, f"inside-{part}-{width}-{scheme}", whole=True)
