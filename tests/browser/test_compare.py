"""Two runs stand beside each other, one stepper moves both, and an address shows the same two again."""

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.browser.helpers import VIEWPORT, comes_to, fits_both_windows, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import click_candidate, expect_address, wait_for_charts

CHANGED = "attention?model=zh-en&panel=head&layer=3&head=1&do=zero-cross.3.1_zero-cross.2.1_zero-cross.1.1"
FOLDS = ("Both outputs, token by token", "Candidates of this step", "The same map in both runs")


def stepper(page, slot):
    return page.locator(f".st-key-{slot}stepper .gf-stepper")


def stand_at(page, left, right):
    """Both steppers come to these steps, counted from 1; in a comparison with a control that one is the second."""
    expect(stepper(page, "b-")).to_have_attribute("data-step", str(left - 1))
    expect(stepper(page, "")).to_have_attribute("data-step", str(right - 1))


def fold(page, name):
    return page.locator("[data-testid='stExpander']").filter(has=page.locator("summary", has_text=name))


def said(page):
    """What the page says of both outputs: their pieces with all numbers, and of the step."""
    for name in FOLDS[:2]:
        if fold(page, name).locator("details[open]").count() == 0:
            fold(page, name).locator("summary").first.click()
    wait_for_charts(page)
    wait_for_idle(page)
    charts = page.locator("[class*='compared_left_candidates'], [class*='compared_outputs']")
    return [chart.inner_text() for chart in charts.all()]


def asked(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_changed_run_is_stepped_beside_its_control_and_a_link_shows_both(server, page):
    turn_to(page, f"{server.url}/{CHANGED}")
    link = menu_link(page, "What if")
    page.locator(".gf-stepper").press("ArrowRight")
    expect(link).to_have_attribute("href", re.compile("step=2"))  # a step draws it again
    page.locator(".gf-stepper").press("ArrowLeft")
    expect(link).to_have_attribute("href", re.compile("^compare\\?(?!.*step=)"))
    entries = page.evaluate("history.length")
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    expect(stepper(page, "b-")).to_be_visible()
    wait_for_idle(page)
    comes_to(page, lambda: page.evaluate("history.length"), entries + 1)
    answer = page.get_by_text(re.compile("(The|Both) outputs .*(same|differ)"))
    expect(answer).to_be_in_viewport()
    for name in FOLDS:
        expect(fold(page, name).locator("details").first).not_to_have_attribute("open", "")
    assert page.get_by_test_id("stMain").evaluate("main => main.scrollHeight") < 1200
    stand_at(page, 1, 1)
    stepper(page, "").get_by_role("button", name="Next").click()
    stand_at(page, 2, 2)
    wait_for_idle(page)
    expect(stepper(page, "b-").get_by_role("button", name="Next")).to_have_count(0)  # one stepper moves both
    stepper(page, "b-").locator(".gf-target .gf-chip:not(.gf-start)").nth(2).click()
    stand_at(page, 3, 3)
    comes_to(page, lambda: asked(page).get("step"), "3")
    assert "b" not in asked(page)
    before, address = said(page), page.url
    expect(page.locator("[class*='compared_left_candidates']")).to_contain_text("step 3")
    page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")  # as for somebody else
    open_page(page, address)
    stand_at(page, 3, 3)
    assert said(page) == before
    fold(page, FOLDS[2]).locator("summary").first.click()
    for chart in ("compared_left_map", "compared_right_map", "compared_difference"):
        expect(page.locator(f"[class*='{chart}'] .main-svg").first).to_be_visible()
    page.locator(".gf-stepper").first.press("ArrowRight")
    stand_at(page, 4, 4)
    wait_for_idle(page)
    expect(fold(page, FOLDS[2]).locator("details[open]")).to_have_count(1)  # a step leaves it open
    fits_both_windows(page, "compare")
    page.set_viewport_size(VIEWPORT)
    sentences_of_other_lengths_and_a_clicked_branch_are_compared(server, page)


def sentences_of_other_lengths_and_a_clicked_branch_are_compared(server, page):
    turn_to(page, f"{server.url}/compare?model=reverse&src=abc&compare=sentences")
    box = page.get_by_role("textbox", name="The other sentence")
    box.fill("abcdefgh")
    box.press("Enter")
    expect(stepper(page, "b-")).to_be_visible()
    expect_address(page, b="src=abcdefgh")
    stepper(page, "b-").get_by_role("button", name="Last step").click()
    expect(stepper(page, "")).to_have_attribute("data-step", "3")
    expect(page.get_by_text("stays at its last step while the other output continues")).to_be_visible()
    expect_address(page, b="src=abcdefgh&step=9")
    stepper(page, "b-").get_by_role("button", name="First step").click()
    expect(stepper(page, "")).to_have_attribute("data-step", "0")
    expect_address(page, b="src=abcdefgh")
    turn_to(page, f"{server.url}/compare?model=reverse&src=abcdef&compare=branches")
    expect(page.locator(".st-key-compared_left_candidates .main-svg").first).to_be_visible()
    wait_for_idle(page)
    click_candidate(page, 2, key="compared_left_candidates")
    expect(fold(page, "Candidates of this step").locator("details")).to_have_attribute("open", "")
    comes_to(page, lambda: bool(re.fullmatch(r"forced=\d+", asked(page).get("b", ""))), expected=True)
    expect(page.get_by_text("The outputs differ from the first token on")).to_be_visible()
