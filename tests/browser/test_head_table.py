"""What heads do is sorted, opened from table, map and menu, and taken home."""

import csv

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import click_chart, comes_to, press_table, table_rows, turn_to, wait_for_idle
from tests.browser.story import SETTLED_MS, address, expect_address

TABLE, MAP, ROWS = "head_table", "head_table_map", "head_table_rows"
CELLS = f".st-key-{TABLE} [role=row]"


def shown_head(page):
    """Part, layer and head of the address."""
    return tuple(address(page).get(name) for name in ("panel", "layer", "head"))


def back(page):
    page.get_by_text("What heads do", exact=True).click()
    expect(page.locator(CELLS).nth(1)).to_be_attached(timeout=SETTLED_MS)
    wait_for_idle(page)


def test_a_head_is_opened_from_table_map_and_menu_and_the_file_has_their_numbers(server, new_page, tmp_path):
    page = new_page(viewport={"width": 1280, "height": 2000})  # high enough to hold everything: it is clicked by place
    turn_to(page, f"{server.url}/attention?model=reverse&src=abcdef&panel=table&kind=encoder&layer=2&head=3")
    expect(page.locator(f".st-key-{MAP} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    names = lambda: [row[0] for row in table_rows(page, TABLE)]  # noqa: E731
    comes_to(page, lambda: [name for name in names() if name.startswith("●")], ["● Layer 2, head 3"])
    assert names()[:2] == ["Layer 1, head 1", "Layer 1, head 2"]
    expect(page.locator(f".st-key-{ROWS}")).to_contain_text("Layer 2, head 3")
    with page.expect_download() as download:
        page.get_by_text("Table as CSV").click()
    download.value.save_as(tmp_path / "heads.csv")
    first, *lines = csv.reader((tmp_path / "heads.csv").read_text(encoding="utf-8-sig").splitlines())
    assert first[:7] == ["checkpoint", "sentence", "chart", "layer", "head", "entropy", "entropy_share"]
    assert lines[0][:3] == ["reverse", "abcdef", "heads of Encoder self-attention"]
    assert download.value.suggested_filename == "reverse_abcdef_heads-of-encoder-self-attention.csv"
    for line, row in zip(lines, table_rows(page, TABLE), strict=True):
        assert row[0].removeprefix("● ") == f"Layer {line[3]}, head {line[4]}"
        assert float(row[2]) == pytest.approx(float(line[6]), abs=1e-4)
    press_table(page, TABLE, -1, 340)
    expect(page.locator(f".st-key-{TABLE} [role=columnheader]").nth(2)).to_contain_text("↑", timeout=SETTLED_MS)
    numbers = lambda: [float(row[2]) for row in table_rows(page, TABLE)]  # noqa: E731
    comes_to(page, lambda: sorted(numbers()) == numbers(), expected=True)
    layer, head = (names()[0].removeprefix("● ").split(" ")[place].strip(",") for place in (1, 3))
    assert (layer, head) != ("1", "1")
    press_table(page, TABLE, 0, 60)
    comes_to(page, lambda: shown_head(page), ("table", layer, head))
    expect(page.get_by_text(f"Layer {layer}, head {head} mostly looks at")).to_be_visible(timeout=SETTLED_MS)
    page.get_by_role("button", name="Open its map").click()
    comes_to(page, lambda: shown_head(page), ("head", layer, head))
    back(page)  # unsorted again, the first row is another head
    press_table(page, TABLE, 0, 60)
    comes_to(page, lambda: shown_head(page), ("table", "1", "1"))
    lowest = min(table_rows(page, TABLE), key=lambda row: float(row[2]))[0].removeprefix("● ")
    page.locator(".st-key-which").get_by_role("button").click()
    page.get_by_label("Open a head's map").focus()  # without a mouse
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_contain_text(lowest)
    page.keyboard.press("Enter")
    page.wait_for_url("**panel=head**")
    comes_to(page, lambda: f"Layer {address(page).get('layer')}, head {address(page).get('head')}", lowest)
    back(page)
    page.locator(f".st-key-{TABLE} canvas").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(f".st-key-{TABLE} [role=gridcell][aria-selected=true]")).to_have_count(1)
    click_chart(page, MAP, 1, 0)
    expect_address(page, panel="table", layer="1", head="2")
