"""The sidebar: what decides everything on top, a short menu whose groups unfold, and a way past it by keyboard."""

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, open_step, source_box

MENU = ".st-key-menu"
ENTRIES = f"{MENU} nav > a, {MENU} nav > details > summary, {MENU} nav > .gf-this"
PLACES = "entries => entries.map(entry => [entry.textContent, Math.round(entry.getBoundingClientRect().top)])"
OUT_OF_SIGHT = "parts => parts.filter(part => part.getBoundingClientRect().bottom > innerHeight).length"


def group(page, name):
    return page.locator(f"{MENU} details").filter(has=page.locator("summary", has_text=name))


def test_all_that_decides_is_in_sight(server, tab):
    for language, decoding in (("en", "Decoding"), ("zh", "解码")):
        turn_to(tab, f"{server.url}/step?model=en-fr&src=I+like+tea.&lang={language}")
        sidebar = tab.get_by_test_id("stSidebar")
        head = sidebar.get_by_role("heading", name=decoding, exact=True)
        expect(head).to_be_visible()
        for key in ("language_choice", "model"):
            expect(sidebar.locator(f".st-key-{key}")).to_be_in_viewport()
            assert sidebar.locator(f".st-key-{key}").bounding_box()["y"] < tab.locator(MENU).bounding_box()["y"]
        for part in (tab.locator(ENTRIES), head):
            assert part.evaluate_all(OUT_OF_SIGHT) == 0
        assert tab.locator(ENTRIES).count() <= 10


def test_nothing_of_the_menu_moves_where_there_is_nothing_to_compare(server, page):
    open_step(page, server)
    places = page.locator(ENTRIES).evaluate_all(PLACES)
    turn_to(page, f"{server.url}/glossary?model=reverse")
    comes_to(page, lambda: page.locator(ENTRIES).evaluate_all(PLACES), places)
    turn_to(page, f"{server.url}/start?model=reverse")
    comes_to(page, lambda: page.locator(ENTRIES).evaluate_all(PLACES), places)


def test_a_group_unfolds_by_keyboard_loads_nothing_and_stays_open_while_one_steps(server, page):
    open_step(page, server, "?model=reverse&src=abcdef")
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
    menu_link(page, "Attention").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Attention")
    wait_for_idle(page)
    expect(group(page, "What if").get_by_role("link")).to_have_count(0)


def test_the_keyboard_comes_to_the_sentence_first(server, page):
    open_step(page, server)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the sentence")).to_be_focused()
    page.keyboard.press("Enter")
    expect(source_box(page)).to_be_focused()


def test_on_a_phone_the_menu_unfolds_under_a_finger(server, new_page):
    page = new_page(viewport=PHONE, color_scheme="dark")
    open_page(page, f"{server.url}/step?model=reverse")
    page.get_by_test_id("stExpandSidebarButton").click()
    group(page, "Inside").locator("summary").click()
    link = group(page, "Inside").get_by_role("link", name="Masks")
    expect(link).to_be_in_viewport()
    assert link.bounding_box()["height"] >= 26
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")


def test_the_language_is_read_whole(server, tab):
    box = tab.locator(".st-key-language_choice [role=combobox]")
    for language in ("en", "zh"):
        turn_to(tab, f"{server.url}/step?model=reverse&src=abc&lang={language}")
        expect(tab.locator(f":root[lang^={language}]")).to_have_count(1)
        expect(box).to_be_visible()
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0, language
