"""Given maps in a real browser: from a file that numpy wrote to looking at one cell, and back by the address."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, chart_menu, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS

MAP, GRID, FLOW = ".st-key-head_map", ".st-key-overview_encoder", ".gf-flow"


def test_from_a_file_to_one_cell_and_back_by_the_address(own_server, page):
    open_page(page, f"{own_server.url}/attention")
    box = page.get_by_role("combobox", name="Checkpoint")
    box.click()
    box.press_sequentially("cat.npz")  # of a long list only what fits below the box is there
    page.get_by_role("option", name="cat.npz (maps)").click()
    wait_for_idle(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text(
        "These attention maps come from a file and are shown unchanged. No model is run. Model: bert-tiny."
    )
    expect(page.locator(f"{GRID} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))

    plot = page.locator(f"{GRID} .js-plotly-plot")
    wait_for_rest(page)
    x, y = plot.evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(7), box.top + yaxis._offset + yaxis.c2p(12)];
        }"""
    )
    page.mouse.click(x, y)  # of the third layer the second head: tiles are 5 x 5
    wait_for_idle(page)
    expect(page.locator(MAP)).to_contain_text("Encoder self-attention: layer 3, head 2", timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"layer=3&head=2.*panel=head"))
    looked = page.url

    page.get_by_role("radio", name="Flow").or_(page.get_by_role("button", name="Flow")).first.click()
    wait_for_idle(page)
    expect(page.locator(FLOW)).to_contain_text("▁cat", timeout=SETTLED_MS)
    page.go_back()
    wait_for_idle(page)
    expect(page.locator(MAP)).to_contain_text("layer 3, head 2", timeout=SETTLED_MS)
    page.reload()
    wait_for_idle(page)
    expect(page.locator(MAP)).to_contain_text("layer 3, head 2", timeout=SETTLED_MS)
    expect(page).to_have_url(looked)

    with page.expect_download() as saved:
        chart_menu(page.locator(MAP), "CSV")
    table = saved.value.path().read_text(encoding="utf-8-sig")
    assert "cat.npz" in table
    assert "the cats" in table
    assert len(table.splitlines()) == 1 + 25


def test_other_pages_say_what_they_need_and_the_choice_stays(own_server, page):
    open_page(page, f"{own_server.url}/attention?model=cat.npz&panel=table")
    menu_link(page, "Positions").click()
    wait_for_idle(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("This page needs a model")
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))
    page.get_by_role("link", name="Look at these maps").click()
    wait_for_idle(page)
    expect(page.locator(".st-key-head_table_map .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"attention\?.*panel=table"))


def test_nothing_is_wider_than_a_phone(own_server, new_page):
    page = new_page(viewport=PHONE, color_scheme="dark")
    for panel in ("overview", "head", "flow", "table"):
        turn_to(page, f"{own_server.url}/attention?model=cat.npz&panel={panel}")
        wait_for_rest(page)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), panel
