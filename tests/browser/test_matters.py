"""A cell of what heads matter opens its head, one click takes it away or puts it back, and the address says so."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import click_chart, comes_to, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address, expect_address

EFFECTS, STEPS = "matters_effects", "matters_steps"
PARTS, TABLE = "matters_parts", ".st-key-matters_pieces"


def is_drawn(page, key):
    expect(page.locator(f".st-key-{key} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_rest(page)


def click(page, key, across, down):
    """Click a chart at shares of its plot."""
    wait_for_rest(page)
    plot = page.locator(f".st-key-{key} .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"])
    wait_for_idle(page)


def head(page):
    return tuple(address(page).get(name) for name in ("kind", "layer", "head"))


def test_what_is_clicked_opens_and_can_be_taken_away_and_put_back(server, page):
    turn_to(page, f"{server.url}/matters?model=zh-en&matters=heads&effect=kl&effect_at=step&step=2")  # of before
    is_drawn(page, EFFECTS)
    title = page.locator(f".st-key-{EFFECTS} .gtitle")
    expect(title).to_have_text(re.compile("^KL divergence at this step with each head ?removed in turn$"))
    numbers = page.locator(f".st-key-{EFFECTS} .annotation-text")
    before = numbers.all_text_contents()
    page.get_by_label("Next step").click()
    expect_address(page, step="3")
    comes_to(page, lambda: numbers.all_text_contents() != before, expected=True)
    wait_for_idle(page)
    # 11 rows and half a row more above, where the first name stands: the last row is layer 3 of cross-attention.
    click(page, EFFECTS, 1 / 8, 11.5 / 12)
    comes_to(page, lambda: head(page), (None, "3", "1"))
    is_drawn(page, STEPS)
    click(page, EFFECTS, 3 / 8, 1.5 / 12)
    comes_to(page, lambda: head(page), ("encoder", "1", "2"))
    page.get_by_role("button", name="Take this head away").click()
    expect_address(page, do="zero-encoder.1.2")
    is_drawn(page, EFFECTS)
    page.get_by_role("button", name="Put this head back").click()
    expect_address(page, do=None)
    wait_for_idle(page)
    a_part_of_a_logit_is_chosen_taken_away_and_its_pieces_are_seen(page, server)


def a_part_of_a_logit_is_chosen_taken_away_and_its_pieces_are_seen(page, server):
    turn_to(page, f"{server.url}/matters?model=reverse&src=glass&matters=logit&step=2")
    is_drawn(page, PARTS)
    click_chart(page, PARTS, 4, 2)  # of the second layer the first head of cross-attention
    page.get_by_role("button", name="Take this head away").click()
    wait_for_idle(page)
    expect_address(page, do="zero-cross.2.1")
    page.locator(".st-key-matters_panel").get_by_text("Tokens", exact=True).click()
    expect(page.locator(f"{TABLE} .gtitle").first).to_contain_text("Step 2")
    page.locator(".gf-stepper").press("ArrowRight")
    expect(page.locator(f"{TABLE} .gtitle").first).to_contain_text("Step 3")
