"""On Attention a tile opens its head and a cell its weight; steps, words and reloads show the same numbers."""

from __future__ import annotations

import functools

import numpy as np
from playwright.sync_api import Page, expect

from glassformer.attention.maps_panel import CELL_ROW
from tests.browser.helpers import (
    click_chart,
    comes_to,
    drawn,
    fits_both_windows,
    hover,
    point_at,
    turn_to,
    wait_for_idle,
)
from tests.browser.story import address, charts_are_drawn, expect_address, switch_guessing
from tools.serve import Server

LETTERS = "glasss"  # six letters and the end: maps of seven pieces
GRID, MAP = "overview_encoder", "head_map"
MIDDLES = "chart => chart.layout.shapes.filter(shape => shape.type === 'rect').map(({ y0, y1 }) => (y0 + y1) / 2)"


def open_attention(page: Page, server: Server, query: str = "") -> Page:
    turn_to(page, f"{server.url}/attention?model=reverse&src={LETTERS}{query}")
    charts_are_drawn(page)
    return page


def title(page: Page, key: str) -> str:
    return " ".join(page.locator(f".st-key-{key} .gtitle").all_text_contents())


def toggle(page: Page, label: str) -> None:
    page.locator(".st-key-which").get_by_role("button").click()
    page.get_by_test_id("stPopoverBody").locator("label").filter(has_text=label).last.click()
    wait_for_idle(page)
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")


def x_range(page: Page) -> list[float]:
    ranges: list[float] = page.locator(f".st-key-{MAP} .js-plotly-plot").evaluate(
        "chart => chart._fullLayout.xaxis.range.map(end => Math.round(end * 10) / 10)"
    )
    return ranges


def test_a_cell_opens_its_head_and_one_map_keeps_what_is_chosen(page: Page, server: Server):
    open_attention(page, server)
    all_heads_mark_the_step_say_each_cell_and_open_the_head_that_is_clicked(page)
    one_map_keeps_zoom_cell_words_and_what_is_to_be_guessed(page, server)


def all_heads_mark_the_step_say_each_cell_and_open_the_head_that_is_clicked(page: Page) -> None:
    assert page.locator(".gf-stepper").bounding_box()["height"] < 160
    assert page.locator(".st-key-overview_cross .gf-chart").bounding_box()["y"] < 620
    for step in range(2):
        for kind in ("decoder", "cross"):
            chart = page.locator(f".st-key-overview_{kind} .js-plotly-plot")
            comes_to(page, functools.partial(chart.evaluate, MIDDLES), [step, step + 7])
        assert page.locator(f".st-key-{GRID} .js-plotly-plot").evaluate(MIDDLES) == []
        page.keyboard.press("ArrowRight")
        wait_for_idle(page)
    masked = hover(page, "overview_decoder", 3, 0)
    assert "closed by the mask: the key comes later" in masked
    assert "about" not in masked
    tile = [row[14:21] for row in drawn(page, GRID)[7:14]]
    said = hover(page, GRID, 14 + 3, 7 + 2)
    assert said.startswith("Layer 2, head 3Source token (query) 3: aSource token (key) 4: s")
    assert "rounded" in said
    click_chart(page, GRID, 14 + 3, 7 + 2)
    expect(page.locator(f".st-key-{MAP}")).to_be_visible()
    charts_are_drawn(page)
    comes_to(page, lambda: title(page, MAP), "Encoder self-attention: layer 2, head 3")
    expect_address(page, panel="head", kind="encoder", layer="2", head="3")
    np.testing.assert_allclose(tile, drawn(page, MAP), rtol=0, atol=0.003)


def one_map_keeps_zoom_cell_words_and_what_is_to_be_guessed(page: Page, server: Server) -> None:
    open_attention(page, server, "&panel=head&layer=2&head=2&log=1&hide=1")
    start, end = point_at(page, MAP, 0.6, 0.6), point_at(page, MAP, 4.4, 5.4)
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

    click_chart(page, MAP, 3, 2)
    expect_address(page, query="3", key="4")
    looked_at = page.locator(f".st-key-{CELL_ROW}")
    expect(looked_at).to_contain_text("row 3")
    shown, numbers, said, named = address(page), drawn(page, MAP), looked_at.inner_text(), title(page, MAP)
    page.reload()
    wait_for_idle(page)
    charts_are_drawn(page)
    comes_to(page, lambda: address(page), shown)
    comes_to(page, lambda: drawn(page, MAP), numbers)
    comes_to(page, lambda: (looked_at.inner_text(), title(page, MAP)), (said, named))

    open_attention(page, server, "&panel=head&kind=encoder&layer=2&head=3")
    before = drawn(page, MAP)
    toggle(page, "Merge tokens into words")
    comes_to(page, lambda: [len(row) for row in drawn(page, MAP)], [2, 2])
    expect_address(page, words="1")
    toggle(page, "Merge tokens into words")
    comes_to(page, lambda: drawn(page, MAP), before)
    open_attention(page, server, "&panel=head&kind=decoder&guess=1&step=3")
    comes_to(page, lambda: [len(row) for row in drawn(page, MAP)], [3, 3, 3])
    switch_guessing(page)
    comes_to(page, lambda: len(drawn(page, MAP)), 7)
    fits_both_windows(page, "attention", [MAP])
