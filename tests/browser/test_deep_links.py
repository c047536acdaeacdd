"""The very first visitor of a server may come by any link."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import menu_link, open_page, wait_for_idle
from tests.browser.test_history import PAGES as OF_A_SENTENCE

TITLES = {"Start": "Glassformer"}  # where the menu says another word than the page
PAGES = {
    "": "Glassformer",
    "start?model=reverse&src=noon": "Glassformer",
    "attention?model=reverse&panel=head&layer=2&head=1": "Attention",
    "positions?model=reverse&positions=shift&shift=2": "Positions",
    "masks?model=reverse&mask=decoder&query=2&key=5": "Masks",
    "compare?model=reverse&src=noon&b=src%3Dabc": "Compare",
    "inside?model=reverse&inside=lens": "Inside the model",
    "sentences?model=reverse&order=chrf": "A file of sentences",
    "wrong?model=reverse&mistake=nan": "What goes wrong",
    "?model=reverse&src=noon&step=2": "Step through decoding",
}


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("checkpoints?model=reverse", "Checkpoints"),
        ("step?model=reverse&src=noon&step=2", "Step through decoding"),
    ],
)
def test_the_first_visitor_finds_the_page(fresh_server, page, path, title):
    open_page(page, f"{fresh_server.url}/{path}")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Reverse letters (reverse)")
    assert page.get_by_text("Page not found").count() == 0
    assert page.get_by_role("dialog").count() == 0
    assert page.get_by_role("alert").count() == 0


def test_every_page_has_an_address(server, page):
    for path, title in PAGES.items():
        open_page(page, f"{server.url}/{path}")
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        assert page.get_by_text("Page not found").count() == 0
        assert page.get_by_role("dialog").count() == 0


def test_back_after_a_reload_keeps_what_the_address_says(server, page):
    open_page(page, f"{server.url}/masks?model=reverse&src=noon")
    menu_link(page, "Attention").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attention")
    wait_for_idle(page)
    page.reload()
    wait_for_idle(page)
    page.go_back()
    wait_for_idle(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Reverse letters (reverse)")


def test_every_page_of_the_menu_can_be_reloaded(server, page):
    """Those about a sentence are reloaded by `test_history.py`."""
    open_page(page, f"{server.url}/?model=reverse")  # which the doctor has soon examined
    names = page.locator(".st-key-menu a:not(.gf-this)").all_text_contents()  # "Compare this" is no page of its own
    others = [name for name in names if name not in OF_A_SENTENCE]
    assert len(names) == len(others) + len(OF_A_SENTENCE)
    for name in others:
        menu_link(page, name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(TITLES.get(name, name))
        page.reload()  # which opens the page's address alone
        wait_for_idle(page)
        expect(page.get_by_role("heading", level=1)).to_have_text(TITLES.get(name, name))
        assert page.get_by_text("Page not found").count() == 0
        assert page.get_by_role("dialog").count() == 0


def test_headers_are_sent_with_every_answer(server, page):
    for path in ("", "app/static/icon.svg", "_stcore/health"):
        headers = page.request.get(f"{server.url}/{path}").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
