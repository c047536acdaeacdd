"""A press on a name of Parameters opens it, and a checkpoint is chosen to compare with."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, expect_address

TABLE, SPREAD, CHANGE = ".st-key-parameters", ".st-key-parameter_spread", ".st-key-parameter_change"
FIRST_ROW, ROW = 52, 29  # pixels from the table's top, and between rows
CHART_TITLE = f"{SPREAD} .gtitle"


def title(page):
    """What the histogram is of, whose title may be on two lines."""
    return page.locator(CHART_TITLE).first.text_content(timeout=SETTLED_MS)


def test_a_press_on_a_name_opens_it_and_two_checkpoints_are_compared(server, new_page):
    page = new_page(viewport={"width": 1280, "height": 1400})
    turn_to(page, f"{server.url}/doctor?model=zh-en&doctor=parameters&names=encoder+weight")
    expect(page.locator(f"{TABLE} [role=row]").nth(1)).to_be_attached(timeout=SETTLED_MS)
    expect(page.locator(f"{SPREAD} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_rest(page)
    box = page.locator(f"{TABLE} canvas").first.bounding_box()
    page.mouse.click(box["x"] + 60, box["y"] + FIRST_ROW + ROW)  # the second row
    chosen = "encoder.layers.0.self_attn.k_proj.weight"
    expect(page.locator(f"{CHART_TITLE}[data-unformatted*='{chosen}']").first).to_be_attached(timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, tensor=chosen)
    comes_to(page, lambda: chosen in title(page), expected=True)

    page.get_by_role("combobox", name="Compare with").click()
    page.get_by_role("option", name="English to French").click()
    expect(page.locator(f"{CHANGE} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, against="en-fr")
    expect(page.get_by_test_id("stMain")).to_contain_text(re.compile(r"Identical: 0 of \d+ tensors\."))
