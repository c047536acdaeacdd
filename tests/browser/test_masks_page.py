"""On Masks a click on a cell or a bar says why it is open or closed."""

import re

from playwright.sync_api import Page, expect

from tests.browser.helpers import click_chart, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN, chart_is_on_the_first_screen, charts_are_drawn, expect_address

REVERSE = "masks?model=reverse&mask=decoder"


def open_masks(page: Page, server, where: str = REVERSE) -> Page:
    """Open the page and wait until its charts are drawn."""
    turn_to(page, f"{server.url}/{where}")
    charts_are_drawn(page)
    return page


def test_a_cell_and_a_bar_say_why(server, page):
    open_masks(page, server, f"{REVERSE}&with=")
    expect(page.locator(".st-key-mask_batch")).to_have_count(0)  # a single sentence has no padding to show
    open_masks(page, server)
    verdict = page.locator(".st-key-mask_verdict")
    click_chart(page, "mask_bool", 8, 2)
    expect(verdict).to_contain_text("No: key 9 is padding in sentence 1, and key 9 also comes after query 3")
    expect_address(page, query="3", key="9")

    expect(page.locator(".st-key-mask_row")).to_have_count(0)  # what is folded is not sent
    page.get_by_text("One row", exact=True).click()
    expect_address(page, masks="one_row")
    wait_for_idle(page)
    charts_are_drawn(page)
    expect(page.locator(".st-key-mask_row .gtitle")).to_contain_text("Layer 1, head 1: query 3")
    closed = page.locator(".st-key-mask_row .barlayer .point").last
    closed.scroll_into_view_if_needed()
    wait_for_rest(page)
    box = closed.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    wait_for_idle(page)
    expect(verdict).to_contain_text(re.compile(r"No: key \d+ is padding in sentence 1"))

    open_masks(page, server, f"masks?model=zh-en&src={FIFTEEN}&step=5&masks=masks")
    chart_is_on_the_first_screen(page, ".st-key-mask_bool .gf-chart")
    cut = "rows => rows.filter(row => row.scrollWidth > row.clientWidth).map(row => row.innerText)"
    assert page.get_by_test_id("stMain").get_by_role("radiogroup").evaluate_all(cut) == []
