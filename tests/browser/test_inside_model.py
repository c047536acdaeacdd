"""On Inside the model a block leads to its view and back; nothing is squeezed, and no text lies over another."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import (
    chart_menu,
    click_chart,
    comes_to,
    fits_both_windows,
    hover,
    overlaps,
    turn_to,
    wait_for_idle,
)
from tests.browser.made_up import HOSTILE, NAME
from tests.browser.story import expect_address, wait_for_charts

LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里"
MODEL, PIECES = ("model_diagram", "cost_shares", "cost_curves"), ("piece_neighbours", "piece_map")
# Where a block of the diagram is, in the units of its axes.
BLOCK = """place => { const chart = document.querySelector(".st-key-model_diagram .js-plotly-plot");
  const trace = chart.data.find(data => data.customdata.includes(place)), index = trace.customdata.indexOf(place);
  return [trace.base ? trace.base[index] + 0.9 * trace.x[index] : trace.x[index], trace.y[index]]; }"""
OUTSIDE = """() => { const chart = document.querySelector(".st-key-model_diagram .js-plotly-plot");
  return [...chart.querySelectorAll(".bars .point")].filter(bar => { const text = bar.querySelector("text");
    const [outer, inner] = [bar.querySelector("path"), text].map(part => part.getBoundingClientRect());
    return inner.left < outer.left || inner.right > outer.right; }).map(bar => bar.textContent); }"""
# The width of a cell of the lens, and those of what is written into cells, in pixels.
CELLS = """() => { const chart = document.querySelector(".st-key-lens_table .js-plotly-plot");
  const { xaxis } = chart._fullLayout;
  return [xaxis._length / 5, ...[...chart.querySelectorAll(".annotation-text")].map(
    (text) => text.getBoundingClientRect().width)]; }"""


def open_part(page, server, part, query):
    turn_to(page, f"{server.url}/inside?inside={part}{query}")
    wait_for_charts(page)


def chart(page, key):
    return page.locator(f".st-key-{key}")


def test_a_block_leads_to_its_view_and_back_and_the_diagram_is_never_squeezed(server, new_page):
    page = new_page()
    turn_to(page, f"{server.url}/inside?model=reverse&src=abcdef&step=3")
    wait_for_charts(page)
    assert page.evaluate(OUTSIDE) == []
    said = hover(page, "model_diagram", *page.evaluate(BLOCK, "decoder.1.cross_attn"))
    assert "Decoder layer 2: cross-attention" in said
    entries = page.evaluate("history.length")
    click_chart(page, "model_diagram", *page.evaluate(BLOCK, "encoder.1.self_attn"))
    expect(page).to_have_url(re.compile("/attention"))
    wait_for_charts(page)
    comes_to(page, lambda: page.evaluate("history.length"), entries + 1)
    expect_address(page, kind="encoder", layer="2", src="abcdef", step="3")
    expect(page.get_by_role("button", name="Encoder self, layer 2")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile("/inside"))
    wait_for_charts(page)
    wait_for_idle(page)
    page.get_by_role("button", name="Options").press("Enter")
    page.get_by_role("combobox", name="Block").fill("Mask of the dec")  # by the keyboard alone
    page.keyboard.press("Enter")
    wait_for_idle(page)
    link = page.get_by_role("link", name="Open its view")
    expect(link).to_have_attribute("href", re.compile("^masks"))
    page.keyboard.press("Escape")

    # Its parts are drawn in pixels: where the window is lower, it scrolls.
    diagram = page.locator(".st-key-model_diagram .main-svg").first
    on_the_page = diagram.bounding_box()["height"]
    chart_menu(chart(page, "model_diagram"), "Show this chart large")
    room = page.locator("dialog[open] .gf-chart")
    page.wait_for_function(
        "() => document.querySelector('dialog[open] .main-svg')?.getBoundingClientRect().width > 1000"
    )
    comes_to(page, lambda: diagram.bounding_box()["height"] >= on_the_page, expected=True)
    comes_to(page, lambda: room.evaluate("room => room.scrollHeight > room.clientHeight"), expected=True)
    page.keyboard.press("Escape")
    fits_both_windows(page, "inside-model", MODEL)


def test_markup_in_pieces_is_shown_letter_by_letter_and_names_of_many_pieces_keep_apart(own_server, page):
    query = f"&model={NAME}&src={'%20'.join(['ba', '%3Cb%3Ex%3C/b%3E', '$x^2$', '%25{y}'])}&side=target"
    open_part(page, own_server, "ffn", query)
    written = [chart(page, "ffn_effect").locator(".ytick text").all_text_contents()]
    open_part(page, own_server, "pieces", query)
    written.append(chart(page, "piece_neighbours").locator(".ytick text").all_text_contents())
    written.append([text for text in chart(page, "piece_map").locator(".textpoint text").all_text_contents() if text])
    for texts in written:
        assert any(text.rstrip("…") and any(piece.startswith(text.rstrip("…")) for piece in HOSTILE) for text in texts)
    assert page.locator(".gf-chart b, .gf-chart img, .gf-chart script, .gf-chart a").count() == 0
    open_part(page, own_server, "pieces", f"&model=zh-en&src={LONG}")
    labels, pairs = overlaps(page, ".st-key-piece_map .textpoint text", (2, 4))
    assert (labels > 20, pairs) == (True, [])
    fits_both_windows(page, "inside-pieces", PIECES)


def test_cells_hold_their_text_tiles_and_blocks_are_walked_through_and_a_measurement_stopped(server, page):
    open_part(page, server, "lens", f"&step=9&side=target&src={LONG * 2}")
    page.get_by_role("radiogroup", name="Read after").get_by_text("Each sub-layer", exact=True).click()
    wait_for_idle(page)
    cell, *written = page.evaluate(CELLS)
    assert max(written) <= cell + 4
    open_part(page, server, "fast", "&model=reverse&src=abcdef&tile_keys=2&block=2")
    chart(page, "tile").get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect_address(page, tile="2")
    expect(chart(page, "tile_output")).to_contain_text("after tile 2 of")
    expect(chart(page, "tile_scores")).to_contain_text("Tile 2 of")
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    expect(chart(page, "cache_blocks")).to_contain_text("Blocks of the KV cache at step 2")
    expect_address(page, step="2", tile="2")
    page.get_by_role("button", name="Measure it on this machine").click()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(page.get_by_role("button", name="Measure it on this machine")).to_be_visible()
    wait_for_idle(page)
