"""Two runs stand beside each other, one stepper moves both, and a branch is compared that is clicked there."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, turn_to, wait_for_idle
from tests.browser.story import address, click_candidate, expect_address

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


def test_a_changed_run_is_stepped_beside_its_control(server, page):
    turn_to(page, f"{server.url}/{CHANGED}")
    menu_link(page, "What if").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    expect(stepper(page, "b-")).to_be_visible()
    wait_for_idle(page)
    expect(page.get_by_text(re.compile("(The|Both) outputs .*(same|differ)"))).to_be_in_viewport()
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
    expect_address(page, step="3", b=None)
    fold(page, FOLDS[2]).locator("summary").first.click()
    for chart in ("compared_left_map", "compared_right_map", "compared_difference"):
        expect(page.locator(f"[class*='{chart}'] .main-svg").first).to_be_visible()
    page.locator(".gf-stepper").first.press("ArrowRight")
    stand_at(page, 4, 4)
    wait_for_idle(page)
    expect(fold(page, FOLDS[2]).locator("details[open]")).to_have_count(1)  # a step leaves it open
    sentences_of_other_lengths_and_a_clicked_branch_are_compared(server, page)


def sentences_of_other_lengths_and_a_clicked_branch_are_compared(server, page):
    turn_to(page, f"{server.url}/compare?model=reverse&src=abc&compare=sentences&b=src%3Dabcdefgh")
    expect(stepper(page, "b-")).to_be_visible()
    stepper(page, "b-").get_by_role("button", name="Last step").click()
    expect(stepper(page, "")).to_have_attribute("data-step", "3")
    expect(page.get_by_text("stays at its last step while the other output continues")).to_be_visible()
    expect_address(page, b="src=abcdefgh&step=9")
    turn_to(page, f"{server.url}/compare?model=reverse&src=abcdef&compare=branches")
    expect(page.locator(".st-key-compared_left_candidates .main-svg").first).to_be_visible()
    wait_for_idle(page)
    click_candidate(page, 2, key="compared_left_candidates")
    expect(fold(page, "Candidates of this step").locator("details")).to_have_attribute("open", "")
    comes_to(page, lambda: bool(re.fullmatch(r"forced=\d+", address(page).get("b", ""))), expected=True)
    expect(page.get_by_text("The outputs differ from the first token on")).to_be_visible()
