"""A file of sentences in a real browser: results that come, a line that opens on other pages, an end when asked."""

import csv

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, menu_link, open_page, screenshot, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import SETTLED_MS, expect_address

TABLE, OPENED, POINTS = ".st-key-sentences_table", ".st-key-sentences_opened", ".st-key-sentences_points"
FIRST_ROW, ROW = 52, 35  # pixels from the table's top, and of one
TEXT = "abc => cba\nglass => ssalg\n=xy => yx=\nletters => srettel\n" + "z" * 30
LONG = "\n".join("abcdefghijkl"[:n] for n in range(2, 13)) + "\n"


@pytest.fixture
def tall(new_page):
    """A page that is high enough to hold everything: the table is a canvas, clicked by place."""
    return new_page(viewport={"width": 1280, "height": 1600})


def run(page, server, text):
    open_page(page, f"{server.url}/sentences?model=reverse")
    page.get_by_role("textbox", name="Sentences, one per line").fill(text)
    page.get_by_role("button", name="Run them").click()


def cells(page, column):
    """A column of the table as assistive technology reads it."""
    read = "lines => lines.map(line => [...line.querySelectorAll('[role=gridcell]')].map(cell => cell.textContent))"
    return [row[column] for row in page.locator(f"{TABLE} [role=row]").evaluate_all(read) if row]


def test_results_come_by_themselves_and_a_line_opens_everywhere(server, tall, tmp_path):
    run(tall, server, TEXT)
    main = tall.get_by_test_id("stMain")
    expect(main).to_contain_text("5 lines were run.", timeout=SETTLED_MS)
    expect(tall.locator(f"{TABLE} [role=row]").nth(5)).to_be_attached(timeout=SETTLED_MS)
    comes_to(tall, lambda: cells(tall, 2)[:2], ["cba", "ssalg"])
    wait_for_idle(tall)
    wait_for_rest(tall)
    box = tall.locator(f"{TABLE} canvas").first.bounding_box()
    tall.mouse.click(box["x"] + 30, box["y"] + FIRST_ROW + ROW)
    expect(tall.locator(OPENED)).to_contain_text("Output: ssalg", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, line="2")
    with tall.expect_download() as download:
        tall.get_by_role("button", name="Table as CSV").click()
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows[:3]] == ["abc", "glass", "'=xy"]
    assert rows[0]["checkpoint"] == "reverse"
    there = tall.url
    tall.locator(OPENED).get_by_role("link", name="Step through decoding").click()
    expect(tall.locator(".gf-stepper")).to_contain_text("s", timeout=SETTLED_MS)
    wait_for_idle(tall)
    expect_address(tall, src="glass", job=None)
    menu_link(tall, "A file of sentences").click()
    expect(tall.locator(OPENED)).to_contain_text("Output: ssalg", timeout=SETTLED_MS)
    open_page(tall, there)
    expect(tall.locator(OPENED)).to_contain_text("Output: ssalg", timeout=SETTLED_MS)
    open_page(tall, f"{server.url}/sentences?model=reverse")
    expect(tall.get_by_role("textbox", name="Sentences, one per line")).to_have_value("", timeout=SETTLED_MS)


def test_a_point_opens_its_line_and_the_page_fits_both_windows(server, page):
    run(page, server, "\n".join(f"{word} => {word[::-1]}" for word in LONG.split()))
    expect(page.get_by_test_id("stMain")).to_contain_text("11 lines were run.", timeout=SETTLED_MS)
    chart = page.locator(f"{POINTS} .js-plotly-plot")
    expect(chart.locator(".main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    chart.scroll_into_view_if_needed()
    x, y = chart.evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, [point] = chart.calcdata[0];
          const box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(point.x), box.top + yaxis._offset + yaxis.c2p(point.y)];
        }"""
    )
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    expect(page.locator(OPENED)).to_contain_text("Line ", timeout=SETTLED_MS)
    for scheme, width in in_both_windows(page):
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth") <= width
        screenshot(page, f"sentences-{scheme}-{width}", whole=True)


def test_a_file_that_is_cancelled_keeps_what_is_there(server, page):
    run(page, server, LONG * 180)
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible(timeout=SETTLED_MS)
    expect(page.locator(TABLE)).to_be_visible(timeout=SETTLED_MS)
    cancel.click()
    expect(page.get_by_test_id("stMain")).to_contain_text("of 1,980 lines.", timeout=SETTLED_MS)
    expect(page.get_by_test_id("stMain")).to_contain_text("Stopped after", timeout=SETTLED_MS)
    expect(cancel).to_have_count(0, timeout=SETTLED_MS)
