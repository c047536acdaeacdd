"""Maps from a file of numpy are looked at and saved, and kept while other pages say that they need a model."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import (
    VIEWPORT,
    chart_menu,
    click_chart,
    fits_both_windows,
    menu_link,
    turn_to,
    wait_for_idle,
)
from tests.browser.story import SETTLED_MS

MAP, GRID, FLOW = ".st-key-head_map", "overview_encoder", ".gf-flow"


def test_from_a_file_to_one_cell_and_back_by_the_address(own_server, page):
    turn_to(page, f"{own_server.url}/attention")
    box = page.get_by_role("combobox", name="Checkpoint")
    box.click()
    box.press_sequentially("cat.npz")  # of a long list only what fits below the box is there
    page.get_by_role("option", name="cat.npz (maps)").click()
    wait_for_idle(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("These attention maps come from a file and are shown unchanged. No model is run.")
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))
    click_chart(page, GRID, 7, 12)  # of the third layer the second head: tiles are 5 x 5
    expect(page.locator(MAP)).to_contain_text("Encoder self-attention: layer 3, head 2", timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"layer=3&head=2.*panel=head"))
    looked = page.url
    page.get_by_role("radio", name="Flow").or_(page.get_by_role("button", name="Flow")).first.click()
    wait_for_idle(page)
    expect(page.locator(FLOW)).to_contain_text("▁cat", timeout=SETTLED_MS)
    fits_both_windows(page, "given-maps")
    page.set_viewport_size(VIEWPORT)
    page.go_back()
    wait_for_idle(page)
    expect(page.locator(MAP)).to_contain_text("layer 3, head 2", timeout=SETTLED_MS)
    expect(page).to_have_url(looked)
    with page.expect_download() as saved:
        chart_menu(page.locator(MAP), "CSV")
    table = saved.value.path().read_text(encoding="utf-8-sig")
    assert "cat.npz" in table
    assert "the cats" in table
    assert len(table.splitlines()) == 1 + 25
    menu_link(page, "Positions").click()
    wait_for_idle(page)
    expect(main).to_contain_text("This page needs a model")
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))
    page.get_by_role("link", name="Look at these maps").click()
    wait_for_idle(page)
    expect(page.locator(f"{MAP} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
