"""A place of a reference is clicked and stepped from, and the address carries the reference to other pages."""

from playwright.sync_api import Page, expect

from tests.browser.helpers import click_chart, menu_link, turn_to, wait_for_idle
from tests.browser.story import expect_address
from tools.serve import Server


def test_a_place_is_clicked_and_the_reference_carried(page: Page, server: Server):
    turn_to(page, f"{server.url}/forcing?model=reverse&src=fedcba&ref=abcxef")
    expect(page.locator(".st-key-forcing_shift .main-svg").first).to_be_visible()
    wait_for_idle(page)
    click_chart(page, "forcing_shift", 2, 0.8)
    expect(page.get_by_text("Token 3: candidates")).to_be_visible()
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", "2")
    expect_address(page, at="3")
    page.locator(".gf-stepper").press("ArrowRight")
    expect(page.get_by_text("Token 4: candidates")).to_be_visible()
    menu_link(page, "Masks").click()
    wait_for_idle(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    expect_address(page, ref="abcxef")
