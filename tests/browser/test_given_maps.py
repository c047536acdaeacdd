"""Maps from a file of numpy are chosen in the list of checkpoints, looked at and saved."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import click_chart, saved, turn_to, wait_for_idle
from tests.browser.story import SETTLED_MS

MAP, GRID = ".st-key-head_map", "overview_encoder"


def test_from_a_file_to_one_head_and_its_table(own_server, page):
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
    table = saved(page, page.locator(MAP), "CSV")[0].decode("utf-8-sig")
    assert "cat.npz" in table
    assert "the cats" in table
    assert len(table.splitlines()) == 1 + 25
