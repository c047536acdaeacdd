"""The Attention page in a real browser: all heads, one map, and what a click, a zoom and an address do."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from glassformer.attention.maps_panel import CELL_ROW
from glassformer.shared import page_style
from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import address, expect_address, switch
from tools.serve import Server

LETTERS = "glasss"  # six letters and the end: maps of seven pieces
GRID = "overview_encoder"
MAP = "head_map"
PLACE = """(chart, [row, column]) => {
  const { xaxis, yaxis } = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
}"""


def open_attention(page: Page, server: Server, query: str = "") -> Page:
    turn_to(page, f"{server.url}/attention?model=reverse&src={LETTERS}{query}")
    expect(page.locator(".st-key-" + page_style.BAR)).to_be_visible()
    wait_for_charts(page)
    return page


def wait_for_charts(page: Page) -> None:
    page.wait_for_function(
        """() => { const charts = [...document.querySelectorAll(".gf-chart")];
          return charts.length > 0 && charts.every(chart => chart.querySelector(".main-svg")); }"""
    )
    wait_for_idle(page)


def plot(page: Page, key: str) -> Any:
    found = page.locator(f".st-key-{key} .js-plotly-plot")
    found.scroll_into_view_if_needed()
    return found


def point_at(page: Page, key: str, row: float, column: float) -> tuple[float, float]:
    found = plot(page, key)
    wait_for_rest(page)
    x, y = found.evaluate(PLACE, [row, column])
    page.mouse.move(x, y)
    return x, y


def click(page: Page, key: str, row: float, column: float) -> None:
    page.mouse.click(*point_at(page, key, row, column))
    page.mouse.move(0, 0)
    wait_for_idle(page)


def drawn(page: Page, key: str) -> list[list[float | None]]:
    """The numbers of a map as the browser has them."""
    rows = plot(page, key).evaluate("chart => Array.from(chart.calcdata[0][0].z, row => Array.from(row))")
    assert rows
    return rows


def title(page: Page, key: str) -> str:
    return " ".join(page.locator(f".st-key-{key} .gtitle").all_text_contents())


def hover(page: Page, key: str, row: float, column: float) -> str:
    point_at(page, key, row, column)
    label = page.locator(f".st-key-{key} .hoverlayer .hovertext")
    expect(label).to_be_visible()
    return label.text_content() or ""


def toggle(page: Page, label: str) -> None:
    page.get_by_role("button", name="Options").click()
    page.get_by_test_id("stPopoverBody").locator("label").filter(has_text=label).last.click()
    wait_for_idle(page)
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")


def x_range(page: Page) -> list[float]:
    return plot(page, MAP).evaluate("chart => chart._fullLayout.xaxis.range.map(end => Math.round(end * 10) / 10)")


def test_a_click_on_a_tile_opens_its_head(tab, server):
    page = open_attention(tab, server)
    tile = [row[14:21] for row in drawn(page, GRID)[7:14]]
    said = hover(page, GRID, 7 + 2, 14 + 3)
    assert said.startswith("Layer 2, head 3Source piece (query) 3: aSource piece (key) 4: s")
    assert "rounded" in said
    click(page, GRID, 7 + 2, 14 + 3)
    expect(page.locator(f".st-key-{MAP}")).to_be_visible()
    wait_for_charts(page)
    comes_to(page, lambda: title(page, MAP), "Encoder self-attention: layer 2, head 3")
    expect_address(page, panel="head", kind="encoder", layer="2", head="3")
    exact = drawn(page, MAP)
    assert (
        max(abs(a - b) for one, other in zip(tile, exact, strict=True) for a, b in zip(one, other, strict=True)) < 0.003
    )


def test_a_masked_cell_of_the_grid_says_why(tab, server):
    page = open_attention(tab, server)
    said = hover(page, "overview_decoder", 0, 3)
    assert "closed by the mask: the key comes later in the output" in said
    assert "about" not in said


def test_the_step_is_marked_in_every_tile_of_the_decoder(tab, server):
    page = open_attention(tab, server)
    middles = "chart => chart.layout.shapes.filter(shape => shape.type === 'rect').map(({ y0, y1 }) => (y0 + y1) / 2)"
    for step in range(2):
        for kind in ("decoder", "cross"):
            chart = plot(page, f"overview_{kind}")
            comes_to(page, functools.partial(chart.evaluate, middles), [step, step + 7])
        assert plot(page, GRID).evaluate(middles) == []
        page.keyboard.press("ArrowRight")
        wait_for_idle(page)


def test_the_keyboard_opens_a_head(tab, server):
    page = open_attention(tab, server, "&kind=decoder&layer=1&head=2")
    page.get_by_role("radio", name="All heads").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_for_idle(page)
    wait_for_charts(page)
    comes_to(page, lambda: title(page, MAP), "Decoder self-attention: layer 1, head 2")


def test_words_and_back_is_the_same_map(tab, server):
    page = open_attention(tab, server, "&panel=head&kind=encoder&layer=2&head=3")
    before = drawn(page, MAP)
    toggle(page, "Merge pieces into words")
    comes_to(page, lambda: [len(row) for row in drawn(page, MAP)], [2, 2])
    expect_address(page, words="1")
    toggle(page, "Merge pieces into words")
    comes_to(page, lambda: drawn(page, MAP), before)


def test_a_step_keeps_the_zoom_and_moves_the_frame(tab, server):
    page = open_attention(tab, server, "&panel=head&layer=2&head=2")
    start, end = point_at(page, MAP, 0.6, 0.6), point_at(page, MAP, 5.4, 4.4)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()
    comes_to(page, lambda: x_range(page)[0] > 0, expected=True)
    wait_for_idle(page)
    zoomed = x_range(page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "key => document.querySelector(`.st-key-${key} .js-plotly-plot`).layout.shapes[0].y0 === 0.5", arg=MAP
    )
    assert x_range(page) == zoomed
    page.locator(f".st-key-{MAP}").get_by_role("button", name="Reset zoom").click()


def test_a_cell_that_was_clicked_is_in_the_address_and_a_reload_finds_the_same_view(tab, server):
    page = open_attention(tab, server, "&panel=head&kind=cross&layer=2&head=2&log=1&hide=1")
    click(page, MAP, 2, 3)
    expect_address(page, query="3", key="4")
    shown = address(page)
    looked_at = page.locator(f".st-key-{CELL_ROW}")
    expect(looked_at).to_contain_text("row 3")
    numbers, said, named = drawn(page, MAP), looked_at.inner_text(), title(page, MAP)
    page.reload()
    wait_for_idle(page)
    wait_for_charts(page)
    comes_to(page, lambda: address(page), shown)
    comes_to(page, lambda: drawn(page, MAP), numbers)
    comes_to(page, lambda: (looked_at.inner_text(), title(page, MAP)), (said, named))


def test_guess_mode_shows_no_later_piece_and_no_later_row(tab, server):
    page = open_attention(tab, server, "&panel=head&kind=decoder&guess=1&step=3")
    comes_to(page, lambda: [len(row) for row in drawn(page, MAP)], [3, 3, 3])
    switch(page, "Hide candidates until I guess")
    comes_to(page, lambda: len(drawn(page, MAP)), 7)


@pytest.mark.parametrize("panel", ["overview", pytest.param("head", marks=pytest.mark.deep)])
def test_nothing_overflows(tab, server, panel):
    page = open_attention(tab, server, f"&panel={panel}&words=1&hide=1&together=max")
    for scheme, width in in_both_windows(page):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        row = page.locator(f".st-key-{page_style.BAR} > *")
        tops = {round(box["y"]) for box in (item.bounding_box() for item in row.all()) if box}
        assert len(tops) == 1 or width < 600, "the controls of the page take more than one row"
        screenshot(page, f"attention-{panel}-{scheme}-{width}", whole=True)


def test_the_charts_begin_on_the_first_screen(server, tab):
    page = open_attention(tab, server)
    wait_for_rest(page)
    stepper = page.locator(".gf-stepper").bounding_box()
    chart = page.locator(".st-key-overview_cross .gf-chart").bounding_box()
    assert stepper["height"] < 160
    assert chart["y"] < 620
    page.keyboard.press("End")
    expect(page.locator(".gf-now")).to_be_in_viewport()
