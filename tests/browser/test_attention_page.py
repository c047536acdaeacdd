"""On Attention a tile opens its head with the same numbers, and lines keep what is chosen of them."""

from __future__ import annotations

import numpy as np
from playwright.sync_api import Page, expect

from tests.browser.helpers import (
    click_chart,
    comes_to,
    drawn,
    fits_both_windows,
    hover,
    in_both_windows,
    turn_to,
    wait_for_idle,
)
from tests.browser.story import charts_are_drawn, expect_address
from tools.serve import Server

LETTERS = "glasss"  # six letters and the end: maps of seven pieces
GRID, MAP = "overview_encoder", "head_map"


def test_a_tile_opens_its_head_and_lines_keep_what_is_chosen(page: Page, server: Server):
    turn_to(page, f"{server.url}/attention?model=reverse&src={LETTERS}")
    charts_are_drawn(page)
    assert page.locator(".gf-stepper").bounding_box()["height"] < 160
    assert page.locator(".st-key-overview_cross .gf-chart").bounding_box()["y"] < 620
    tile = [row[14:21] for row in drawn(page, GRID)[7:14]]
    said = hover(page, GRID, 14 + 3, 7 + 2)
    assert said.startswith("Layer 2, head 3Source token (query) 3: aSource token (key) 4: s")
    assert "rounded" in said
    click_chart(page, GRID, 14 + 3, 7 + 2)
    expect(page.locator(f".st-key-{MAP}")).to_be_visible()
    charts_are_drawn(page)
    title = page.locator(f".st-key-{MAP} .gtitle")
    comes_to(page, lambda: " ".join(title.all_text_contents()), "Encoder self-attention: layer 2, head 3")
    expect_address(page, panel="head", kind="encoder", layer="2", head="3")
    np.testing.assert_allclose(tile, drawn(page, MAP), rtol=0, atol=0.003)

    fits_both_windows(page, "attention", [MAP])

    page.locator(".st-key-which button").first.click()  # what was chosen in a menu that is closed again
    page.get_by_role("combobox", name="Layer", exact=False).last.click()
    page.get_by_role("option", name="Layer 1", exact=True).click()
    expect_address(page, layer="1", head="3")
    page.keyboard.press("Escape")
    turn_to(page, f"{server.url}/attention?model=reverse&src={LETTERS}&panel=flow&kind=cross&layer=2")
    lines = page.locator(".gf-flow")
    expect(lines).to_have_attribute("data-heads", "1 2 3 4")
    page.locator(".gf-flow-query .gf-flow-token").nth(2).click()
    expect_address(page, panel="flow", query="3")
    wait_for_idle(page)
    page.get_by_role("button", name="Head 2", exact=True).click()
    expect_address(page, query="3", heads="1.3.4")
    wait_for_idle(page)
    page.get_by_label("Next step").click()
    expect_address(page, step="2", query="3", heads="1.3.4", layer="2", kind=None)  # is not sent once more
    for _ in in_both_windows(page):
        expect(lines).to_have_attribute("data-pinned", "query 2")
        assert lines.evaluate("root => root.scrollWidth <= root.clientWidth")
