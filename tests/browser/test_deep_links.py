"""The very first visitor of a server may come by any link."""

import pytest
from playwright.sync_api import expect

from benchmarks.raw_client import RawClient
from tests.browser.helpers import menu_link, open_page, turn_to, wait_for_idle
from tests.browser.test_history import PAGES as OF_A_SENTENCE

TITLES = {"Start": "Glassformer"}  # where the menu says another word than the page
PAGES = {  # what "/" leads to, `test_start_page.py` and `test_history.py` open
    "start?model=reverse&src=noon": "Glassformer",
    "attention?model=reverse&panel=head&layer=2&head=1": "Attention",
    "positions?model=reverse&positions=shift&shift=2": "Positions",
    "masks?model=reverse&mask=decoder&query=2&key=5": "Masks",
    "compare?model=reverse&src=noon&b=src%3Dabc": "Compare",
    "inside?model=reverse&inside=lens": "Inside the model",
    "sentences?model=reverse&order=chrf": "A file of sentences",
    "corpus?model=reverse&corpus=search&rank=5": "Over a corpus",
    "training?model=reverse&steps=1": "Training",
    "wrong?model=reverse&mistake=nan": "What goes wrong",
}


@pytest.mark.parametrize(
    ("path", "title"),
    [
        pytest.param("checkpoints?model=reverse", "Checkpoints", marks=pytest.mark.deep),
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


def opens(server, path, title):
    """Come by an address alone, without a browser: a page that is not found or fails is an error there."""
    page, _, query = path.partition("?")
    with RawClient(server.url) as visitor:
        assert title in visitor.rerun(page=page, query=query).texts


def test_every_page_has_an_address(server):
    for path, title in PAGES.items():
        opens(server, path, title)


def test_every_page_of_the_menu_opens_by_the_address_that_it_leads_to(server, tab):
    """Those about a sentence are in `test_history.py`."""
    turn_to(tab, f"{server.url}/step?model=reverse")  # which the doctor has soon examined
    names = tab.locator(".st-key-menu a:not(.gf-this)").all_text_contents()  # "Compare this" is no page of its own
    others = [name for name in names if name not in OF_A_SENTENCE]
    assert len(names) == len(others) + len(OF_A_SENTENCE)
    for name in others:
        menu_link(tab, name).click()
        expect(tab.get_by_role("heading", level=1)).to_have_text(TITLES.get(name, name))
        wait_for_idle(tab)
        opens(server, tab.url.removeprefix(f"{server.url}/"), TITLES.get(name, name))
        assert tab.get_by_text("Page not found").count() == 0
        assert tab.get_by_role("dialog").count() == 0


def test_headers_are_sent_with_every_answer(server, page):
    for path in ("", "app/static/icon.svg", "_stcore/health"):
        headers = page.request.get(f"{server.url}/{path}").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
