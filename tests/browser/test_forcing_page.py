"""A place of a reference is clicked and stepped from, and the address carries both to other pages and back."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.components import expect_step
from tests.browser.helpers import menu_link, screenshot, turn_to, wait_for_idle
from tools.serve import Server

BOX = "Reference: the correct output"
SHIFT = ".st-key-forcing_shift"


def cell(page: Page, column: int) -> tuple[float, float]:
    """Where a column of the first row of the shift is on the screen."""
    page.locator(SHIFT).scroll_into_view_if_needed()
    wait_for_idle(page)
    x, y = page.evaluate(
        """([place, column]) => {
          const chart = document.querySelector(`${place} [role="img"]`);
          const { xaxis, yaxis } = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(0.8)];
        }""",
        [SHIFT, column],
    )
    return x, y


def test_a_place_is_clicked_and_the_reference_carried(page: Page, server: Server):
    turn_to(page, f"{server.url}/forcing?model=reverse&src=fedcba&ref=abcxef")
    expect(page.locator(f"{SHIFT} .main-svg").first).to_be_visible()
    wait_for_idle(page)
    screenshot(page, "forcing", whole=True)
    page.mouse.click(*cell(page, 2))
    expect(page.get_by_text(re.compile("Token 3: candidates"))).to_be_visible()
    wait_for_idle(page)
    expect_step(page, 2)
    expect(page).to_have_url(re.compile("at=3"))
    page.locator(".gf-stepper").press("ArrowRight")
    expect(page.get_by_text(re.compile("Token 4: candidates"))).to_be_visible()
    menu_link(page, "Masks").click()
    wait_for_idle(page)
    expect(page).to_have_url(re.compile("/masks.*ref=abcxef"))
    menu_link(page, "Translate").click()
    menu_link(page, "Teacher forcing").click()
    expect(page.get_by_label(BOX)).to_have_value("abcxef")
