"""The diagram of the model in a real browser: a click leads to a view, and nothing overflows."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import chart_menu, comes_to, in_both_windows, open_page, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import expect_address, wait_for_charts

CHARTS = ("model_diagram", "cost_shares", "cost_curves")
_MIDDLE = """place => { const chart = document.querySelector(".st-key-model_diagram .js-plotly-plot");
  const { xaxis, yaxis } = chart._fullLayout, trace = chart.data.find(data => data.customdata.includes(place));
  const index = trace.customdata.indexOf(place), box = chart.getBoundingClientRect();
  const x = trace.base ? trace.base[index] + 0.9 * trace.x[index] : trace.x[index];
  return [box.left + xaxis._offset + xaxis.d2p(x), box.top + yaxis._offset + yaxis.d2p(trace.y[index])]; }"""
_OUTSIDE = """() => { const chart = document.querySelector(".st-key-model_diagram .js-plotly-plot");
  return [...chart.querySelectorAll(".bars .point")].filter(bar => { const text = bar.querySelector("text");
    const [outer, inner] = [bar.querySelector("path"), text].map(part => part.getBoundingClientRect());
    return inner.left < outer.left || inner.right > outer.right; }).map(bar => bar.textContent); }"""


def point_at(page, place):
    page.locator(".st-key-model_diagram").scroll_into_view_if_needed()
    page.evaluate(
        """y => { document.querySelector('[data-testid="stMain"]').scrollBy(0, y - 400); }""",
        page.evaluate(_MIDDLE, place)[1],
    )
    wait_for_rest(page)
    x, y = page.evaluate(_MIDDLE, place)
    page.mouse.move(x, y)
    return x, y


def click(page, place):
    page.mouse.click(*point_at(page, place))
    wait_for_idle(page)


def test_a_block_leads_to_its_view_and_back_again(server, new_page):
    page = new_page(fresh=True)  # a browser counts 50 entries at most, and tabs are shared
    open_page(page, f"{server.url}/inside?model=reverse&src=abcdef&step=3")
    wait_for_charts(page)
    point_at(page, "decoder.1.cross_attn")
    expect(page.locator(".st-key-model_diagram .hoverlayer")).to_contain_text("Decoder layer 2: cross-attention")
    entries = page.evaluate("history.length")
    click(page, "encoder.1.self_attn")
    expect(page).to_have_url(re.compile("/attention"))
    wait_for_charts(page)
    comes_to(page, lambda: page.evaluate("history.length"), entries + 1)
    expect_address(page, kind="encoder", layer="2", src="abcdef", step="3")
    expect(page.get_by_role("combobox", name="Layer")).to_have_value("Layer 2")
    page.go_back()
    expect(page).to_have_url(re.compile("/inside"))
    wait_for_charts(page)
    wait_for_idle(page)
    expect(page.locator(".st-key-model_diagram .main-svg").first).to_be_visible()
    expect_address(page, src="abcdef")
    click(page, "decoder.0.ffn.plus")
    expect(page.get_by_role("radiogroup", name="Part").get_by_role("radio", checked=True)).to_have_text(
        "Residual stream"
    )
    page.get_by_role("radiogroup", name="Part").get_by_text("The model", exact=True).click()
    wait_for_idle(page)
    page.get_by_role("button", name="Options").press("Enter")
    page.get_by_role("combobox", name="Block").fill("Mask of the dec")  # by the keyboard alone
    page.keyboard.press("Enter")
    wait_for_idle(page)
    page.get_by_role("link", name="Open its view").press("Enter")
    expect(page).to_have_url(re.compile("/masks"))
    wait_for_idle(page)
    expect_address(page, mask=None, src="abcdef")  # the decoder's, with which the page opens
    expect(page.get_by_role("combobox", name="Mask")).to_have_value("Padding and causal")
    expect(page.get_by_label("Input", exact=True)).to_have_value("abcdef")


def test_nothing_overflows(server, tab):
    turn_to(tab, f"{server.url}/inside")
    wait_for_charts(tab)
    for scheme, width in in_both_windows(tab):
        main = tab.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        for key in CHARTS:
            box = tab.locator(f".st-key-{key} .main-svg").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        assert tab.evaluate(_OUTSIDE) == []
        screenshot(tab, f"inside-model-{width}-{scheme}", whole=True)


def test_the_diagram_is_not_squeezed_into_the_large_view(server, page):
    """Its parts are drawn in pixels: where the window is lower, it scrolls."""
    open_page(page, f"{server.url}/inside?model=zh-en")
    wait_for_charts(page)
    chart = page.locator(".st-key-model_diagram .main-svg").first
    on_the_page = chart.bounding_box()["height"]
    assert on_the_page > page.viewport_size["height"]
    chart_menu(page.locator(".st-key-model_diagram"), "Show this chart large")
    room = page.locator("dialog[open] .gf-chart")
    expect(room).to_be_visible()
    page.wait_for_function(
        "() => document.querySelector('dialog[open] .main-svg')?.getBoundingClientRect().width > 1000"
    )
    comes_to(page, lambda: chart.bounding_box()["height"] >= on_the_page, expected=True)
    comes_to(page, lambda: room.evaluate("room => room.scrollHeight - room.clientHeight") > 100, expected=True)
    page.keyboard.press("Escape")
    expect(room).to_be_hidden()
