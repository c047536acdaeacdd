"""Given maps in a real browser: from a file that numpy wrote to looking at one cell, and back by the address."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, menu_link, open_page, wait_for_idle
from tests.browser.story import SETTLED_MS
from tests.transformer.maps.made_up import SOURCE, weights
from tools.serve import serve

MAP, GRID, FLOW = ".st-key-head_map", ".st-key-overview_encoder", ".gf-flow"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """The app with a file of maps in a folder of its own, as numpy alone writes it."""
    folder = tmp_path_factory.mktemp("given_maps")
    (folder / "own").mkdir()
    labels = np.array(SOURCE)
    np.savez_compressed(
        folder / "own" / "cat.npz",
        encoder_weights=weights(4, 3, 5, 5),
        encoder_queries=labels,
        encoder_keys=labels,
        checkpoint="bert-tiny",
        sentence="the cats",
    )
    with serve(log=folder / "app.log", arguments=["--checkpoints", str(folder / "own")]) as running:
        yield running


def test_from_a_file_to_one_cell_and_back_by_the_address(app, page):
    open_page(page, f"{app.url}/attention")
    page.get_by_role("combobox", name="Checkpoint").click()
    page.get_by_role("option", name="cat.npz (maps)").click()
    wait_for_idle(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("Given maps, shown as they are; nothing is run here. Model: bert-tiny.")
    expect(page.locator(f"{GRID} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))

    plot = page.locator(f"{GRID} .js-plotly-plot")
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
    assert page.url == looked

    with page.expect_download() as saved:
        page.locator(MAP).get_by_role("button", name="CSV").click()
    table = saved.value.path().read_text(encoding="utf-8-sig")
    assert "cat.npz" in table
    assert "the cats" in table
    assert len(table.splitlines()) == 1 + 25


def test_other_pages_say_what_they_need_and_the_choice_stays(app, page):
    open_page(page, f"{app.url}/attention?model=cat.npz&panel=table")
    menu_link(page, "Positions").click()
    wait_for_idle(page)
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text("This page needs a model")
    expect(page).to_have_url(re.compile(r"model=cat\.npz"))
    page.get_by_role("link", name="Look at these maps").click()
    wait_for_idle(page)
    expect(page.locator(".st-key-head_table_map .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    expect(page).to_have_url(re.compile(r"attention\?.*panel=table"))


@pytest.mark.parametrize("panel", ["overview", "head", "flow", "table"])
def test_nothing_is_wider_than_a_phone(app, new_page, panel):
    page = new_page(viewport=PHONE, color_scheme="dark")
    open_page(page, f"{app.url}/attention?model=cat.npz&panel={panel}")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
