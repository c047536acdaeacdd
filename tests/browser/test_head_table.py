"""What heads do, in a real browser: sort, open a head from table, map and menu, and take the file home."""

import csv

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, address, expect_address

TABLE, MAP, ROWS = ".st-key-head_table", ".st-key-head_table_map", ".st-key-head_table_rows"
CELLS = f"{TABLE} [role=row]"
HEADING, FIRST_ROW = 17, 52  # pixels from the table's top
VIEW = "?model=reverse&src=abcdef&panel=table"


@pytest.fixture
def tall(new_page):
    """A page that is high enough to hold everything: the table is a canvas, clicked by place."""
    return new_page(viewport={"width": 1280, "height": 2000}, shared=True)


def open_table(page, server, view=""):
    turn_to(page, f"{server.url}/attention{VIEW}{view}")
    expect(page.locator(f"{MAP} .main-svg").first).to_be_visible(timeout=SETTLED_MS)
    expect(page.locator(CELLS).nth(1)).to_be_attached(timeout=SETTLED_MS)
    wait_for_idle(page)


def rows(page):
    """The table as assistive technology reads it: a list of cells a row."""
    read = "lines => lines.map(line => [...line.querySelectorAll('[role=gridcell]')].map(cell => cell.textContent))"
    return [row for row in page.locator(CELLS).evaluate_all(read) if row]


def press(page, x, y):
    wait_for_rest(page)
    box = page.locator(f"{TABLE} canvas").first.bounding_box()
    page.mouse.click(box["x"] + x, box["y"] + y)  # what scrolls the canvas lies over it and takes the click
    wait_for_idle(page)


def shown_head(page):
    """Part, layer and head of the address."""
    return tuple(address(page).get(name) for name in ("panel", "layer", "head"))


def back(page):
    page.get_by_text("What heads do", exact=True).click()
    expect(page.locator(CELLS).nth(1)).to_be_attached(timeout=SETTLED_MS)
    wait_for_idle(page)


def test_a_sorted_table_opens_the_head_that_its_row_names_again_and_again(server, tall):
    open_table(tall, server, "&kind=encoder")
    comes_to(tall, lambda: [row[0] for row in rows(tall)][:2], ["Layer 1, head 1", "Layer 1, head 2"])
    press(tall, 140, HEADING)
    expect(tall.locator(f"{TABLE} [role=columnheader]").nth(1)).to_contain_text("↑", timeout=SETTLED_MS)
    comes_to(tall, lambda: sorted(found := [float(row[1]) for row in rows(tall)]) == found, expected=True)
    layer, head = (rows(tall)[0][0].split(" ")[place].strip(",") for place in (1, 3))
    assert (layer, head) != ("1", "1")
    press(tall, 60, FIRST_ROW)
    comes_to(tall, lambda: shown_head(tall), ("head", layer, head))
    for _ in range(2):  # unsorted again, the first row is another head; then the same head once more
        back(tall)
        press(tall, 60, FIRST_ROW)
        comes_to(tall, lambda: shown_head(tall), ("head", "1", "1"))


def test_the_chosen_head_is_marked_and_a_cell_of_the_map_opens_another(server, tall):
    open_table(tall, server, "&layer=2&head=3")
    comes_to(tall, lambda: [row[0] for row in rows(tall) if row[0].startswith("●")], ["● Layer 2, head 3"])
    expect(tall.locator(ROWS)).to_contain_text("Layer 2, head 3")
    wait_for_rest(tall)
    plot = tall.locator(f"{MAP} .nsewdrag").first.bounding_box()
    tall.mouse.move(plot["x"] + plot["width"] / 8, plot["y"] + plot["height"] / 4)
    expect(tall.locator(f"{MAP} .hoverlayer")).to_contain_text("Layer 1")
    tall.mouse.click(plot["x"] + plot["width"] / 8, plot["y"] + plot["height"] / 4)
    tall.wait_for_url("**panel=head**")
    expect_address(tall, layer="1", head="1")


def test_without_a_mouse_the_menu_opens_the_lowest_head_and_the_table_can_be_read(server, tall):
    open_table(tall, server, "&kind=decoder")
    comes_to(tall, lambda: len(rows(tall)), 8)
    lowest = min(rows(tall), key=lambda row: float(row[2]))[0]
    menu = tall.get_by_label("Open the map of a head")
    menu.focus()
    tall.keyboard.press("ArrowDown")
    expect(tall.get_by_role("option").first).to_contain_text(lowest)
    tall.keyboard.press("Enter")
    tall.wait_for_url("**panel=head**")
    comes_to(tall, lambda: f"Layer {address(tall).get('layer')}, head {address(tall).get('head')}", lowest)
    back(tall)
    tall.locator(f"{TABLE} canvas").first.focus()
    tall.keyboard.press("ArrowDown")
    chosen = tall.locator(f"{TABLE} [role=gridcell][aria-selected=true]")
    expect(chosen).to_have_count(1)


def test_the_file_holds_the_tables_numbers(server, tall, tmp_path):
    open_table(tall, server, "&kind=cross")
    with tall.expect_download() as download:
        tall.get_by_text("Table as CSV").click()
    download.value.save_as(tmp_path / "heads.csv")
    first, *lines = csv.reader((tmp_path / "heads.csv").read_text(encoding="utf-8-sig").splitlines())
    about = ["checkpoint", "sentence", "chart"]
    assert first[: len(about) + 3] == [*about, "layer", "head", "entropy"]
    assert lines[0][: len(about)] == ["reverse", "abcdef", "heads of Cross-attention"]
    assert download.value.suggested_filename == "reverse_abcdef_heads-of-cross-attention.csv"
    lines = [line[len(about) :] for line in lines]
    assert len(lines) == 8
    comes_to(tall, lambda: len(rows(tall)), 8)
    for line, row in zip(lines, rows(tall), strict=True):
        assert row[0] == f"Layer {line[0]}, head {line[1]}"
        assert float(row[1]) == pytest.approx(float(line[2]), abs=1e-4)


def test_it_fits_the_screen(server, tab):
    page = tab
    open_table(page, server, "&kind=encoder&layer=1&head=2")
    for scheme, width in in_both_windows(page):
        main = page.locator('[data-testid="stMain"]')
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        for part in (TABLE, MAP, ROWS):
            box = page.locator(part).bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        screenshot(page, f"head-table-{scheme}-{width}", whole=True)
