"""The sidebar has on top what decides everything, a menu that stays and unfolds, and a way past it by keyboard."""

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, open_step, source_box

MENU = ".st-key-menu"
ENTRIES = f"{MENU} nav > a, {MENU} nav > details > summary, {MENU} nav > .gf-this"
PLACES = "entries => entries.map(entry => [entry.textContent, Math.round(entry.getBoundingClientRect().top)])"
OUT_OF_SIGHT = "parts => parts.filter(part => part.getBoundingClientRect().bottom > innerHeight).length"


def group(page, name):
    return page.locator(f"{MENU} details").filter(has=page.locator("summary", has_text=name))


def all_that_decides_is_in_sight(page, decoding):
    sidebar = page.get_by_test_id("stSidebar")
    head = sidebar.get_by_role("heading", name=decoding, exact=True)
    expect(head).to_be_visible()
    for key in ("language_choice", "model"):
        expect(sidebar.locator(f".st-key-{key}")).to_be_in_viewport()
        assert sidebar.locator(f".st-key-{key}").bounding_box()["y"] < page.locator(MENU).bounding_box()["y"]
    for part in (page.locator(ENTRIES), head):
        assert part.evaluate_all(OUT_OF_SIGHT) == 0
    assert page.locator(ENTRIES).count() <= 10
    box = page.locator(".st-key-language_choice [role=combobox]")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0  # it is read whole


def test_it_is_in_sight_stays_in_place_unfolds_by_keyboard_and_is_skipped(server, page):
    open_page(page, f"{server.url}/step?model=en-fr&src=I+like+tea.&lang=zh")
    all_that_decides_is_in_sight(page, "解码")
    open_step(page, server, "?model=reverse&src=abcdef&lang=en")
    all_that_decides_is_in_sight(page, "Decoding")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the sentence")).to_be_focused()
    page.keyboard.press("Enter")
    expect(source_box(page)).to_be_focused()

    places = page.locator(ENTRIES).evaluate_all(PLACES)
    folded = group(page, "What if")
    expect(folded.get_by_role("link")).to_have_count(0)
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(folded.get_by_role("link")).to_have_count(3)
    page.get_by_label("Next step").click()
    expect_address(page, step="2")
    wait_for_idle(page)
    expect(folded.get_by_role("link")).to_have_count(3)
    folded.get_by_role("link", name="What goes wrong").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("What goes wrong")
    wait_for_idle(page)
    expect(group(page, "What if").get_by_role("link")).to_have_count(3)  # its own group
    menu_link(page, "Glossary").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Glossary")
    wait_for_idle(page)
    expect(group(page, "What if").get_by_role("link")).to_have_count(0)
    turn_to(page, f"{server.url}/start?model=reverse")  # where there is nothing to compare
    comes_to(page, lambda: page.locator(ENTRIES).evaluate_all(PLACES), places)
