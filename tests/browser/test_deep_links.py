"""The first visitor of a server may come by any link, and each page of the menu opens by its address."""

import pytest
from playwright.sync_api import expect

from benchmarks.raw_client import RawClient
from tests.browser.helpers import menu_link, open_page, wait_for_idle

TITLES = {  # where the menu says another word than the page
    "What if": "Compare",
    "Teach or join a room": "A room",
    "My model": "Open a checkpoint",
}
# What "/" leads to: test_first_screen.py and test_history.py; what pages say: tests/pages/transcripts.
OPENED = ("Translate", "Attention", "Positions", "Masks", "Inside")  # here or by other tests
FIRST = {"step?model=reverse&src=noon&step=2": "Translate", "checkpoints?model=reverse": "Checkpoints"}
CLICKED = ("My model",)  # the entry with most tabs


def opens(server, address, title):
    """Come by an address alone, without a browser: a page that is not found or fails is an error there."""
    page, _, query = address.partition("?")
    with RawClient(server.url) as visitor:
        assert title in visitor.rerun(page=page, query=query).texts


@pytest.mark.parametrize("path", [one if "step" in one else pytest.param(one, marks=pytest.mark.deep) for one in FIRST])
def test_the_first_visitor_finds_the_page_and_the_menu_leads_to_all_others(fresh_server, page, path):
    open_page(page, f"{fresh_server.url}/{path}")
    expect(page.get_by_role("heading", level=1)).to_have_text(FIRST[path])
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Reverse letters (reverse)")
    assert page.get_by_text("Page not found").count() == 0
    assert page.get_by_role("dialog").or_(page.get_by_role("alert")).count() == 0
    for name in CLICKED:
        menu_link(page, name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(TITLES.get(name, name))
        wait_for_idle(page)
        assert page.get_by_text("Page not found").count() == 0
    links = page.locator(".st-key-menu a, .st-key-tabs a")
    leads = dict(links.evaluate_all("links => links.map(link => [link.textContent, link.getAttribute('href')])"))
    assert len(leads) >= 11 + 5
    for name in leads.keys() - {*OPENED, *CLICKED}:
        opens(fresh_server, leads[name], TITLES.get(name, name))
    for path in ("", "app/static/icon.svg", "_stcore/health"):
        headers = page.request.get(f"{fresh_server.url}/{path}").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
