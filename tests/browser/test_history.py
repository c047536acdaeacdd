"""Going from page to page: one click is one entry of the browser's history, and nothing is lost on the way back."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, open_page, wait_for_idle
from tests.browser.story import expect_address, source_box

SENTENCE = "I like tea *~' & now."
OWN = f"?model=en-fr&src={quote(SENTENCE)}&step=2"
PAGES = ("Positions", "Masks", "Checkpoints", "Attention", "Inside the model", "Start", "Step through decoding")
SOME = ("Masks", "Checkpoints", "Start", "Step through decoding")  # without a sentence, or a step
RELOADED = ("Masks", "Start")  # each by its address alone: tests/pages/test_choices_in_the_address.py
CHECKPOINT = "English to French (en-fr)"


def title(page):
    return page.get_by_role("heading", level=1)


def entries(page):
    return page.evaluate("history.length")


def keeps_all(page, name):
    expect(title(page)).to_have_text("Glassformer" if name == "Start" else name)
    wait_for_idle(page)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value(CHECKPOINT)
    expect_address(page, model="en-fr", src=SENTENCE, step="2")
    if name != "Checkpoints":
        expect(source_box(page)).to_have_value(SENTENCE)


@pytest.mark.parametrize("pages", [SOME, pytest.param(PAGES, marks=pytest.mark.deep)], ids=["some", "every"])
def test_a_click_in_the_menu_is_one_entry_and_back_or_a_reload_keeps_everything(server, new_page, pages):
    page = new_page(fresh=True)  # a browser counts 50 entries at most, and tabs are shared
    open_page(page, f"{server.url}/step{OWN}")
    for name in pages:
        before = entries(page)
        menu_link(page, name).click()
        keeps_all(page, name)
        comes_to(page, lambda: entries(page), before + 1)
    for name in reversed(("Step through decoding", *pages[:-1])):
        page.go_back()
        keeps_all(page, name)
        if name in RELOADED:
            page.reload()
            keeps_all(page, name)


def test_links_are_true_after_a_step_and_open_in_a_new_tab(server, new_page):
    page = new_page()
    open_page(page, f"{server.url}/step{OWN.replace('step=2', 'step=1')}")
    page.locator(".gf-stepper").press("ArrowRight")
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", "1")
    wait_for_idle(page)
    for name in PAGES:
        expect(menu_link(page, name)).to_have_attribute("href", re.compile("step=2"))  # once the step has settled
        there = menu_link(page, name).evaluate("link => link.href")
    tab = new_page()
    open_page(tab, there)
    keeps_all(tab, PAGES[-1])


def test_the_bare_page_of_the_defaults_is_no_trap(server, page):
    """Whoever began with the defaults, and typed on another page, comes back to each as it was."""
    open_page(page, f"{server.url}/positions")
    own = source_box(page).input_value()
    source_box(page).fill("你好。")
    source_box(page).press("Enter")
    wait_for_idle(page)
    menu_link(page, "Masks").click()
    expect(title(page)).to_have_text("Masks")
    wait_for_idle(page)
    expect(source_box(page)).to_have_value("你好。")
    for name, sentence in (("Positions", "你好。"), ("Positions", own)):
        page.go_back()
        wait_for_idle(page)
        expect(title(page)).to_have_text(name)
        expect(source_box(page)).to_have_value(sentence)


def test_an_old_address_of_the_step_page_leads_there_and_lets_go(server, page):
    open_page(page, f"{server.url}/start")
    page.goto(f"{server.url}/?model=reverse&src=noon&step=2")
    wait_for_idle(page)
    expect(title(page)).to_have_text("Step through decoding")
    expect(page).to_have_url(re.compile(r"/step\?model=reverse&src=noon&step=2$"))
    page.go_back()
    wait_for_idle(page)
    expect(title(page)).to_have_text("Glassformer")


def test_a_step_that_is_followed_is_followed_after_a_reload(server, page):
    open_page(page, f"{server.url}/attention{OWN}&panel=flow&layer=1")
    follow = page.get_by_role("button", name="Follow the step")
    follow.click()
    wait_for_idle(page)
    expect_address(page, follow="1")
    page.reload()
    wait_for_idle(page)
    expect(follow).to_have_attribute("aria-pressed", "true")
    follow.click()
    wait_for_idle(page)
    expect_address(page, follow=None)
    page.go_back()
    wait_for_idle(page)
    expect(follow).to_have_attribute("aria-pressed", "true")
