"""The Doctor page as a person sees it: an examination that begins by itself, its verdict, and the ways on from it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, menu_link, open_page, screenshot, turn_to, wait_for_idle

DONE_MS = 180_000  # a busy machine lets others go first
VERDICT = re.compile("reverse is healthy: [0-9]+ tests found nothing wrong")


@pytest.fixture
def examined(server, tab):
    """The page of the model that reverses letters, examined."""
    come = open_page if "/doctor" in tab.url else turn_to  # what was unfolded and typed there has gone
    come(tab, f"{server.url}/doctor?model=reverse")
    expect(tab.get_by_text(VERDICT).first).to_be_visible(timeout=DONE_MS)
    wait_for_idle(tab)
    return tab


def test_it_examines_by_itself_and_keeps_the_report(server, examined, faults):
    menu_link(examined, "Masks").click()
    expect(examined.get_by_role("heading", level=1)).to_have_text("Masks")
    examined.go_back()
    expect(examined.get_by_text(VERDICT).first).to_be_visible()
    examined.reload()
    wait_for_idle(examined)
    expect(examined.get_by_text(VERDICT).first).to_be_visible()
    expect(examined.get_by_role("button", name="Stop", exact=True)).to_have_count(0)


def test_each_finding_leads_to_what_shows_it(examined):
    examined.get_by_text(re.compile(r"Well: \d+ tests")).click()
    link = examined.get_by_role("link", name="See it in Masks").first
    link.click()
    expect(examined.get_by_role("heading", level=1)).to_have_text("Masks")
    expect(examined.get_by_role("combobox", name="Checkpoint")).to_have_value("Reverse letters (reverse)")


def test_sentences_that_are_typed_are_examined_with(examined):
    examined.get_by_text("Examine with your own sentences").click()
    examined.get_by_role("textbox", name="Sentences").fill("abc => cba\nglass => ssalg")
    examined.get_by_role("button", name="Examine with these").click()
    expect(examined.get_by_text("2 sentences of your own were used.")).to_be_visible(timeout=DONE_MS)
    expect(examined.get_by_text(VERDICT).first).to_be_visible()


def test_it_fits_a_telephone_in_the_dark(examined):
    phone = examined
    phone.set_viewport_size(PHONE)
    phone.emulate_media(color_scheme="dark")
    phone.get_by_text(re.compile(r"Well: \d+ tests")).click()
    wait_for_idle(phone)
    assert phone.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    screenshot(phone, "doctor-phone-dark")
