"""In a browser: a piece of the sentence is clicked, and the model says what it would write there."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.helpers import open_page, wait_for_idle
from tools.serve import Server

CHIPS = ".gf-stepper .gf-source .gf-chip"


def test_a_piece_is_hidden_by_a_click_and_by_a_key(page: Page, own_server: Server):
    open_page(page, f"{own_server.url}/step?model=filling&src=the+quick+fox&hidden=2")
    chips = page.locator(CHIPS)
    expect(chips.nth(1)).to_have_attribute("aria-pressed", "true", timeout=30_000)
    chips.nth(2).click()
    expect(page.get_by_text("Token 3: candidates for the hidden piece")).to_be_visible(timeout=30_000)
    wait_for_idle(page)
    expect(page).to_have_url(re.compile("hidden=3"))
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    chips.nth(3).press("Enter")
    expect(page.get_by_text("Token 4: candidates for the hidden piece")).to_be_visible(timeout=30_000)
    expect(page.locator(".gf-stepper .gf-controls")).to_be_hidden()  # there is nothing to step through
