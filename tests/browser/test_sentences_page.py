"""A file of sentences is run, stopped and saved, and a row or a point of it opens its line on every page."""

import csv

from playwright.sync_api import expect

from tests.browser.helpers import click_chart, comes_to, open_page, press_table, table_rows, turn_to, wait_for_idle
from tests.browser.story import SETTLED_MS, expect_address

TABLE, OPENED, POINTS = "sentences_table", ".st-key-sentences_opened", "sentences_points"
TEXT = "abc => cba\nglass => ssalg\n=xy => yx=\nletters => srettel\n" + "z" * 30
LONG = "\n".join("abcdefghijkl"[:n] for n in range(2, 13)) + "\n"
POINT = "chart => [chart.calcdata[0][0].x, chart.calcdata[0][0].y]"


def run(page, server, text):
    open_page(page, f"{server.url}/sentences?model=reverse")
    box = page.get_by_role("textbox", name="Sentences, one per line")
    expect(box).to_have_value("")
    box.fill(text)
    page.get_by_role("button", name="Run them").click()


def test_results_come_by_themselves_and_a_line_opens_everywhere(server, new_page):
    page = new_page(viewport={"width": 1280, "height": 1600})  # the table is a canvas, clicked by place
    run(page, server, TEXT)
    expect(page.get_by_test_id("stMain")).to_contain_text("5 lines were run.", timeout=SETTLED_MS)
    expect(page.locator(f".st-key-{TABLE} [role=row]").nth(5)).to_be_attached(timeout=SETTLED_MS)
    comes_to(page, lambda: [row[2] for row in table_rows(page, TABLE)][:2], ["cba", "ssalg"])
    wait_for_idle(page)
    press_table(page, TABLE, 1)
    expect(page.locator(OPENED)).to_contain_text("Output: ssalg", timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, line="2")
    with page.expect_download() as download:
        page.get_by_role("button", name="Table as CSV").click()
    with open(download.value.path(), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows[:3]] == ["abc", "glass", "'=xy"]
    assert rows[0]["checkpoint"] == "reverse"
    click_chart(page, POINTS, *page.locator(f".st-key-{POINTS} .js-plotly-plot").evaluate(POINT))
    expect_address(page, line="1")
    there = page.url
    page.locator(OPENED).get_by_role("link", name="Translate", exact=True).click()
    expect(page.locator(".gf-stepper")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, src="abc", job=None)
    turn_to(page, there)
    expect(page.locator(OPENED)).to_contain_text("Output: cba", timeout=SETTLED_MS)

    run(page, server, LONG * 180)
    cancel = page.get_by_role("button", name="Cancel")
    expect(cancel).to_be_visible(timeout=SETTLED_MS)
    expect(page.locator(f".st-key-{TABLE}")).to_be_visible(timeout=SETTLED_MS)
    cancel.click()
    expect(page.get_by_test_id("stMain")).to_contain_text("of 1,980 lines.", timeout=SETTLED_MS)
    expect(page.get_by_test_id("stMain")).to_contain_text("Stopped after", timeout=SETTLED_MS)
    expect(cancel).to_have_count(0, timeout=SETTLED_MS)
