"""What a step owes to pieces and parts, in a browser: a head is chosen and taken away, and its pieces are seen."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.helpers import open_page, screenshot, wait_for_idle
from tests.browser.story import expect_address
from tools.serve import Server

MAP, TABLE = ".st-key-matters_parts", ".st-key-matters_pieces"
PLACE = """([place, row, column]) => {
  const chart = document.querySelector(`${place} [role="img"]`);
  const { xaxis, yaxis } = chart._fullLayout;
  const box = chart.getBoundingClientRect();
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
}"""


def title(page: Page, chart: str) -> str:
    return " ".join(page.locator(f"{chart} .gtitle").all_text_contents())


def test_a_head_is_chosen_taken_away_and_its_pieces_are_seen(page: Page, server: Server) -> None:
    open_page(page, f"{server.url}/matters?model=reverse&src=glass&matters=logit&step=2")
    expect(page.locator(f"{MAP} .main-svg").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"The \d+ parts add up to .* is rounding"))).to_be_visible()
    wait_for_idle(page)
    page.mouse.click(*page.evaluate(PLACE, [MAP, 2, 4]))  # of the second layer the first head of cross-attention
    expect_address(page, kind=None, layer="2", head="1")
    expect(page.get_by_text("Open its map")).to_be_visible()
    screenshot(page, "logit", whole=True)
    page.get_by_role("button", name="Take this head away").click()
    wait_for_idle(page)
    expect_address(page, do="zero-cross.2.1")
    page.locator(".st-key-matters_panel").get_by_text("Pieces", exact=True).click()
    expect(page.locator(f"{TABLE} .main-svg").first).to_be_visible()
    wait_for_idle(page)
    assert "Step 2" in title(page, TABLE)
    page.locator(TABLE).get_by_role("button", name="More", exact=True).click()
    expect(page.get_by_text("All measurements are made in the changed run")).to_be_visible()
    page.locator(".gf-stepper").press("ArrowRight")
    expect(page.locator(f"{TABLE} .gtitle").first).to_contain_text("Step 3")
    wait_for_idle(page)
    screenshot(page, "pieces", whole=True)
    page.reload()
    wait_for_idle(page)
    expect(page.locator(f"{TABLE} .gtitle").first).to_contain_text("Step 3")
