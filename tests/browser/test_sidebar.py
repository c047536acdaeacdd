"""The sidebar has on top what decides everything and a menu that stays, with tabs beside it, and can be skipped."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, open_step, source_box

MENU = ".st-key-menu"
ENTRIES, TABS = f"{MENU} nav > a", ".st-key-tabs a"
PLACES = "entries => entries.map(entry => [entry.textContent, Math.round(entry.getBoundingClientRect().top)])"
OUT_OF_SIGHT = "parts => parts.filter(part => part.getBoundingClientRect().bottom > innerHeight).length"


def all_that_decides_is_in_sight(page):
    sidebar = page.get_by_test_id("stSidebar")
    for key in ("language_choice", "model"):
        expect(sidebar.locator(f".st-key-{key}")).to_be_in_viewport()
        assert sidebar.locator(f".st-key-{key}").bounding_box()["y"] < page.locator(MENU).bounding_box()["y"]
    expect(page.locator(ENTRIES)).to_have_count(11)
    assert page.locator(ENTRIES).evaluate_all(OUT_OF_SIGHT) == 0
    box = page.locator(".st-key-language_choice [role=combobox]")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0  # it is read whole


def opens(page, link, title, tabs):
    """Follow a link of the menu or of the tabs by keyboard, to a page with these tabs."""
    menu_link(page, link).press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    wait_for_idle(page)
    expect(page.locator(TABS)).to_have_text(tabs)


def test_it_is_in_sight_stays_in_place_has_tabs_and_is_skipped(server, page):
    open_page(page, f"{server.url}/step?model=en-fr&src=I+like+tea.&lang=zh")
    all_that_decides_is_in_sight(page)
    open_step(page, server, "?model=reverse&src=abcdef&lang=en")
    all_that_decides_is_in_sight(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the sentence")).to_be_focused()
    page.keyboard.press("Enter")
    expect(source_box(page)).to_be_focused()

    places = page.locator(ENTRIES).evaluate_all(PLACES)
    page.get_by_label("Next step").click()
    for name in ("Masks", "Teacher forcing"):  # an entry, a tab
        expect(menu_link(page, name)).to_have_attribute("href", re.compile("step=2"))
    wait_for_idle(page)
    translate, what_if = page.locator(TABS).all_inner_texts(), ["Compare", "What matters", "What goes wrong"]
    opens(page, "Teacher forcing", "Teacher forcing", translate)
    expect(menu_link(page, "Translate")).to_have_attribute("aria-current", "true")
    expect(menu_link(page, "Teacher forcing")).to_have_attribute("aria-current", "page")
    expect_address(page, src="abcdef", step="2")
    opens(page, "What if", "Compare", what_if)
    opens(page, "Glossary", "Glossary", [])
    comes_to(page, lambda: page.locator(ENTRIES).evaluate_all(PLACES), places)
    page.set_viewport_size(PHONE)
    turn_to(page, f"{server.url}/wrong?model=reverse&src=abcdef")
    expect(page.locator(TABS)).to_have_text(what_if)
    expect(menu_link(page, "What goes wrong")).to_be_in_viewport(ratio=1)
