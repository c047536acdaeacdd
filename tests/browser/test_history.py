"""One click is one entry of the browser's history, and Back, a reload or a new page loses nothing."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import expect_address, source_box

SENTENCE = "I like tea *~' & now."
OWN = f"?model=en-fr&src={quote(SENTENCE)}&step=2"
PAGES = ("Positions", "Masks", "My model", "Checkpoints", "Attention", "Inside", "How tokens are chosen", "Translate")
SOME = ("Masks", "My model", "Checkpoints")  # an entry, another one without a sentence, a tab of that
TITLES = {"My model": "Open a checkpoint"}
RELOADED = ("Masks",)  # each by its address alone: tests/pages/test_choices_in_the_address.py
CHECKPOINT = "English to French (en-fr)"


def title(page):
    return page.get_by_role("heading", level=1)


def entries(page):
    return page.evaluate("history.length")


def keeps_all(page, name):
    expect(title(page)).to_have_text(TITLES.get(name, name))
    wait_for_idle(page)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value(CHECKPOINT)
    expect_address(page, model="en-fr", src=SENTENCE, step="2")
    if name not in ("My model", "Checkpoints"):
        expect(source_box(page)).to_have_value(SENTENCE)


@pytest.mark.parametrize("pages", [SOME, pytest.param(PAGES, marks=pytest.mark.deep)], ids=["some", "every"])
def test_a_click_in_the_menu_is_one_entry_and_back_or_a_reload_keeps_everything(server, page, pages):
    turn_to(page, f"{server.url}/step{OWN.replace('step=2', 'step=1')}")
    page.locator(".gf-stepper").press("ArrowRight")
    expect(menu_link(page, "Masks")).to_have_attribute("href", re.compile("step=2"))  # once the step has settled
    there = menu_link(page, "Masks").evaluate("link => link.href")
    for name in pages:
        before = entries(page)
        menu_link(page, name).click()
        keeps_all(page, name)
        comes_to(page, lambda: entries(page), before + 1)
    for name in reversed(("Translate", *pages[:-1])):
        page.go_back()
        keeps_all(page, name)
        if name in RELOADED:
            page.reload()
            keeps_all(page, name)
    open_page(page, there)  # as a new page does
    keeps_all(page, "Masks")
    old_and_bare_addresses_are_no_traps_on_the_way_back(server, page)


def old_and_bare_addresses_are_no_traps_on_the_way_back(server, page):
    """Whoever began with the defaults, and typed on another page, comes back to each as it was."""
    turn_to(page, f"{server.url}/positions")
    own = source_box(page).input_value()
    source_box(page).fill("你好。")
    source_box(page).press("Enter")
    wait_for_idle(page)
    page.goto(f"{server.url}/?model=reverse&src=noon&step=2")
    expect(title(page)).to_have_text("Translate")
    wait_for_idle(page)
    expect(page).to_have_url(re.compile(r"/step\?model=reverse&src=noon&step=2$"))
    for sentence in ("你好。", own):
        page.go_back()
        wait_for_idle(page)
        expect(title(page)).to_have_text("Positions")
        expect(source_box(page)).to_have_value(sentence)
