"""The part "Speed-ups" in a real browser: tiles and steps, the address, both themes, a phone, and a stopped job."""

from playwright.sync_api import expect

from tests.browser.helpers import in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.story import expect_address, wait_for_charts

CHARTS = ("tile_scores", "tile_output", "cache_blocks", "cache_places")


def test_tiles_blocks_and_a_measurement_that_is_stopped(server, tab):
    turn_to(tab, f"{server.url}/inside?inside=fast&model=reverse&src=abcdef&tile_keys=2&block=2")
    wait_for_charts(tab)
    for scheme, width in in_both_windows(tab):
        assert tab.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")
        for key in CHARTS:
            box = tab.locator(f".st-key-{key} .main-svg").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        screenshot(tab, f"inside-fast-{width}-{scheme}", whole=True)
    tab.locator(".st-key-tile").get_by_role("slider").focus()
    tab.keyboard.press("ArrowRight")
    expect_address(tab, tile="2")
    expect(tab.locator(".st-key-tile_output")).to_contain_text("after tile 2 of")
    expect(tab.locator(".st-key-tile_scores")).to_contain_text("Tile 2 of")
    tab.evaluate("() => document.activeElement.blur()")
    tab.keyboard.press("ArrowRight")
    expect(tab.locator(".st-key-cache_blocks")).to_contain_text("Blocks of the KV cache at step 2")
    expect_address(tab, step="2", tile="2")
    tab.get_by_role("button", name="Measure it on this machine").click()
    tab.get_by_role("button", name="Stop", exact=True).click()
    expect(tab.get_by_role("button", name="Measure it on this machine")).to_be_visible()
    wait_for_idle(tab)
