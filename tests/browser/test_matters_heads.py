"""What matters, part Heads, in a real browser: a cell of either map opens its head, and one click takes it away."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address

EFFECTS, GRID, STEPS, MAP = "matters_effects", "matters_grid", "matters_steps", "matters_map"
VIEW = "matters?model=zh-en"


def open_matters(page, server, view=""):
    turn_to(page, f"{server.url}/{VIEW}{view}")
    expect(page.locator(f".st-key-{EFFECTS} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
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


def test_a_cell_of_either_map_opens_its_head_which_can_be_taken_away_and_put_back(server, tab):
    open_matters(tab, server)
    # 11 rows and half a row more above, where the first name stands: the last row is layer 3 of cross-attention.
    click(tab, EFFECTS, 1 / 8, 11.5 / 12)
    comes_to(tab, lambda: head(tab), (None, "3", "1"))
    for key in (STEPS, MAP):
        expect(tab.locator(f".st-key-{key} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    click(tab, EFFECTS, 3 / 8, 1.5 / 12)
    comes_to(tab, lambda: head(tab), ("encoder", "1", "2"))
    expect(tab.locator(f".st-key-{GRID}")).to_contain_text("Encoder self-attention")
    click(tab, GRID, 7 / 8, 1 / 2)
    comes_to(tab, lambda: head(tab), ("encoder", "2", "4"))
    tab.get_by_role("button", name="Take this head away").click()
    comes_to(tab, lambda: address(tab).get("do"), "zero-encoder.2.4")
    expect(tab.locator(f".st-key-{EFFECTS} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    tab.get_by_role("button", name="Put this head back").click()
    comes_to(tab, lambda: address(tab).get("do"), None)


def test_a_link_opens_the_same_and_a_step_moves_what_is_shown(server, tab):
    open_matters(tab, server, "&layer=3&head=1&effect=kl&effect_at=step&step=2")
    screenshot(tab, "matters-heads")
    title = tab.locator(f".st-key-{EFFECTS} .gtitle")
    expect(title).to_have_text(re.compile("^KL divergence at this step with each head ?removed in turn$"))
    before = tab.locator(f".st-key-{EFFECTS} .annotation-text").all_text_contents()
    tab.get_by_label("Next step").click()
    comes_to(tab, lambda: address(tab).get("step"), "3")
    comes_to(
        tab, lambda: tab.locator(f".st-key-{EFFECTS} .annotation-text").all_text_contents() != before, expected=True
    )


def test_it_fits_both_windows(server, tab):
    open_matters(tab, server, "&layer=3&head=1")
    widest = "() => Math.max(...[...document.querySelectorAll('.gf-chart')].map(one => one.clientWidth))"
    for scheme, width in in_both_windows(tab):
        assert 0 < tab.evaluate(widest) <= width
        screenshot(tab, f"matters-heads-{scheme}", whole=True)
