"""Without any private part of Streamlit pages open, steps and clicks arrive, and the log says what is lost."""

import pytest
from playwright.sync_api import expect

from glassformer.server.streamlit_private import PAGE, REPLACED, SCRIPT, UPLOADS
from tests.browser.helpers import click_chart, comes_to, menu_link, open_page, wait_for_idle
from tests.browser.story import browser_step, expect_address
from tools.serve import serve

OFF = {"GLASSFORMER_STREAMLIT_PRIVATE": "off"}


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory):
    with serve(log=tmp_path_factory.mktemp("plain") / "app.log", environment=OFF) as running:
        yield running


def test_steps_links_and_clicks_arrive_and_the_log_says_what_is_lost_once_each(plain_server, page):
    open_page(page, f"{plain_server.url}/start?model=reverse")  # may say that a page was not found: one of the losses
    told = [line for line in plain_server.log_text().splitlines() if "A private part of Streamlit" in line]
    for use in (*REPLACED, SCRIPT, UPLOADS, PAGE):
        assert sum(use.lost in line for line in told) == 1
    assert len(told) == len(REPLACED) + 3
    open_page(page, f"{plain_server.url}/step?model=reverse&src=abcdef")
    for step in (2, 3):
        page.get_by_label("Next step").click()
        comes_to(page, lambda: browser_step(page), step)
        expect_address(page, step=str(step))
        expect(page.locator(".st-key-candidates")).to_contain_text(f"Step {step}")
    menu_link(page, "Masks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    wait_for_idle(page)
    expect_address(page, step="3")
    click_chart(page, "mask_bool", 4, 2)
    expect_address(page, query="3", key="5")
    assert "Traceback" not in plain_server.log_text()
