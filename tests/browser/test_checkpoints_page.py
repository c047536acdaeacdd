"""The Checkpoints page in a real browser: its card and its scores, in both themes and in a small window."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import menu_link, turn_to, wait_for_idle
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import SETTLED_MS


def open_checkpoints(page, own_server, model="reverse"):
    turn_to(page, f"{own_server.url}/checkpoints?model={model}")
    page.get_by_text("How it was trained").wait_for(timeout=SETTLED_MS)
    return page


def unfold(page):
    counted = page.locator("details").filter(has_text="How each score was computed")
    if counted.get_attribute("open") is None:
        counted.locator("summary").click()


def test_the_chosen_checkpoint_stays_on_the_way_to_the_step_page(own_server, tab):
    page = open_checkpoints(tab, own_server)
    menu_link(page, "Step through decoding").click()
    expect(page.locator(".gf-stepper")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    page.get_by_role("button", name="Examples").click()
    expect(page.get_by_role("menuitem", name="aabbcc")).to_be_visible()


def test_a_card_of_markup_is_shown_letter_by_letter(own_server, tab):
    page = open_checkpoints(tab, own_server, NAME)
    unfold(page)
    main = page.get_by_test_id("stMain")
    for text in (f"Data {IMAGE}", "**none** $x^2$", IMAGE, "<b>key</b>", "<i>value</i>"):
        expect(main).to_contain_text(text)
    assert main.locator("td img, td script, td b, td i, td .katex, td a").count() == 0


@pytest.mark.parametrize(("scheme", "width"), [pytest.param("light", 1280, marks=pytest.mark.deep), ("dark", 390)])
def test_nothing_is_wider_than_the_window(own_server, new_page, width, scheme):
    touch = {"visitor": "mobile", "has_touch": True, "is_mobile": True} if width < 600 else {"shared": True}
    page = new_page(viewport={"width": width, "height": 720}, color_scheme=scheme, **touch)
    open_checkpoints(page, own_server)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(
        """() => { const main = document.querySelector('[data-testid=stMain]');
          return main.scrollWidth <= main.clientWidth; }"""
    )
