"""The app without any private part of Streamlit: pages open, steps and clicks arrive, the log says what is lost."""

import pytest
from playwright.sync_api import expect

from glassformer.server.streamlit_private import PAGE, REPLACED, SCRIPT, UPLOADS
from tests.browser.helpers import comes_to, menu_link, open_page, wait_for_idle
from tests.browser.story import browser_step, expect_address
from tests.browser.test_masks_page import click_cell
from tools.serve import serve

OFF = {"GLASSFORMER_STREAMLIT_PRIVATE": "off"}
PAGES = {
    "start?model=reverse": "Glassformer",
    "attention?model=reverse&panel=head&layer=2&head=1": "Attention",
    "inside?model=reverse&inside=lens": "Inside the model",
    "checkpoints?model=reverse": "Checkpoints",
}


@pytest.fixture(scope="module")
def plain_server(profile, tmp_path_factory):
    with serve(log=tmp_path_factory.mktemp("plain") / "app.log", environment=OFF) as running:
        first = profile.new_page()  # may be told that a page was not found, which is one of the losses
        open_page(first, f"{running.url}/start?model=reverse")
        first.close()
        yield running


def test_the_log_says_what_is_lost_once_each(plain_server):
    told = [line for line in plain_server.log_text().splitlines() if "A private part of Streamlit" in line]
    for use in (*REPLACED, SCRIPT, UPLOADS, PAGE):
        assert sum(use.lost in line for line in told) == 1
    assert len(told) == len(REPLACED) + 3


def test_pages_open(plain_server, page):
    for path, title in PAGES.items():
        open_page(page, f"{plain_server.url}/{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
    assert "Traceback" not in plain_server.log_text()


def test_steps_and_links_arrive(plain_server, page):
    open_page(page, f"{plain_server.url}/step?model=reverse&src=abc")
    for step in (2, 3):
        page.get_by_label("Next step").click()
        comes_to(page, lambda: browser_step(page), step)
        expect_address(page, step=str(step))
        expect(page.locator(".st-key-cross_row")).to_contain_text(f"Step {step}")
    menu_link(page, "Masks").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    wait_for_idle(page)
    expect_address(page, step="3")
    assert "Traceback" not in plain_server.log_text()


def test_a_click_in_a_map_arrives(plain_server, page):
    open_page(page, f"{plain_server.url}/masks?model=reverse&src=abcdef")
    click_cell(page, "mask_bool", 2, 4)
    expect_address(page, query="3", key="5")
    assert "Traceback" not in plain_server.log_text()
