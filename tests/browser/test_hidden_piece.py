"""In a browser: a piece of the sentence is clicked, and the model says what it would write there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import open_page, wait_for_idle
from tests.transformer.featured import filling
from tools.serve import Server, serve

CHIPS = ".gf-stepper .gf-source .gf-chip"


@pytest.fixture(scope="module")
def filling_server(tmp_path_factory: pytest.TempPathFactory):
    """The app with a tiny encoder that fills gaps."""
    root = tmp_path_factory.mktemp("filling")
    filling(root)
    with serve(log=tmp_path_factory.mktemp("server") / "app.log", arguments=["--checkpoints", str(root)]) as running:
        yield running


def test_a_piece_is_hidden_by_a_click_and_by_a_key(page: Page, filling_server: Server):
    open_page(page, f"{filling_server.url}/step?model=filling&src=the+quick+fox&hidden=2")
    chips = page.locator(CHIPS)
    expect(chips.nth(1)).to_have_attribute("aria-pressed", "true", timeout=30_000)
    chips.nth(2).click()
    expect(page.get_by_text("Token 3: candidates for the gap")).to_be_visible(timeout=30_000)
    wait_for_idle(page)
    assert "hidden=3" in page.url
    expect(chips.nth(2)).to_have_attribute("aria-pressed", "true")
    chips.nth(3).press("Enter")
    expect(page.get_by_text("Token 4: candidates for the gap")).to_be_visible(timeout=30_000)
    assert page.locator(".gf-stepper .gf-controls").is_hidden()  # there is nothing to step through
