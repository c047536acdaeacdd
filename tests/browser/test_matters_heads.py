"""What matters, part Heads, in a real browser: a cell of either map opens its head, and one click takes it away."""

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, open_page, screenshot, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address

EFFECTS, GRID, STEPS, MAP = "matters_effects", "matters_grid", "matters_steps", "matters_map"
VIEW = "matters?model=zh-en"


def open_matters(page, server, view=""):
    open_page(page, f"{server.url}/{VIEW}{view}")
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


def test_a_cell_of_either_map_opens_its_head_which_can_be_taken_away_and_put_back(server, page):
    open_matters(page, server)
    # 11 rows and half a row more above, where the first name stands: the last row is layer 3 of cross-attention.
    click(page, EFFECTS, 1 / 8, 11.5 / 12)
    comes_to(page, lambda: head(page), (None, "3", "1"))
    for key in (STEPS, MAP):
        expect(page.locator(f".st-key-{key} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    click(page, EFFECTS, 3 / 8, 1.5 / 12)
    comes_to(page, lambda: head(page), ("encoder", "1", "2"))
    expect(page.locator(f".st-key-{GRID}")).to_contain_text("Encoder self-attention")
    click(page, GRID, 7 / 8, 1 / 2)
    comes_to(page, lambda: head(page), ("encoder", "2", "4"))
    page.get_by_role("button", name="Take this head away").click()
    comes_to(page, lambda: address(page).get("do"), "zero-encoder.2.4")
    expect(page.locator(f".st-key-{EFFECTS} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    page.get_by_role("button", name="Put this head back").click()
    comes_to(page, lambda: address(page).get("do"), None)


def test_a_link_opens_the_same_and_a_step_moves_what_is_shown(server, page):
    open_matters(page, server, "&layer=3&head=1&effect=kl&effect_at=step&step=2")
    screenshot(page, "matters-heads")
    title = page.locator(f".st-key-{EFFECTS} .gtitle")
    expect(title).to_have_text("This step without each head: KL divergence")
    before = page.locator(f".st-key-{EFFECTS} .annotation-text").all_text_contents()
    page.get_by_label("Next step").click()
    comes_to(page, lambda: address(page).get("step"), "3")
    comes_to(
        page,
        lambda: page.locator(f".st-key-{EFFECTS} .annotation-text").all_text_contents() != before,
        expected=True,
    )


def test_it_fits_both_windows(server, page):
    open_matters(page, server, "&layer=3&head=1")
    widest = "() => Math.max(...[...document.querySelectorAll('.gf-chart')].map(one => one.clientWidth))"
    for scheme, width in in_both_windows(page):
        assert 0 < page.evaluate(widest) <= width
        screenshot(page, f"matters-heads-{scheme}", whole=True)
