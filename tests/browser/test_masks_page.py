"""The Masks page as a person sees it: click a cell, read the reason, reload the address."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import POLL_MS, wait_for_rest
from tests.browser.story import FIFTEEN, chart_is_on_the_first_screen, expect_address

REVERSE = "masks?model=reverse&mask=decoder"


def open_masks(page: Page, server, where: str = REVERSE) -> Page:
    """Open the page and wait until its charts are drawn."""
    turn_to(page, f"{server.url}/{where}")
    wait_for_every_chart(page)
    return page


def wait_for_every_chart(page: Page) -> None:
    """Return once every chart of the section is drawn; one section has a single one."""
    page.wait_for_function(
        """() => { const charts = [...document.querySelectorAll(".gf-chart")];
          return charts.length && charts.every(chart => chart.querySelector(".main-svg")); }""",
        polling=POLL_MS,
    )


def click_cell(page: Page, chart: str, row: int, column: int) -> None:
    """Click the middle of a cell of a map, counted from 0."""
    plot = page.locator(f".st-key-{chart} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    wait_for_rest(page)
    x, y = plot.evaluate(
        """(plot, [row, column]) => {
          const { xaxis, yaxis } = plot._fullLayout;
          const box = plot.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
        }""",
        [row, column],
    )
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    page.mouse.move(0, 0)
    wait_for_idle(page)


def verdict(page: Page):
    """The sentence that says whether the query may see the key."""
    return page.locator(".st-key-mask_verdict")


def test_a_click_on_a_cell_says_why(server, tab):
    page = open_masks(tab, server)
    click_cell(page, "mask_bool", 2, 4)  # rows and columns from 0, what is said from 1
    expect(verdict(page)).to_contain_text("No: key 5 comes after query 3 (the future).")
    click_cell(page, "mask_additive", 2, 1)
    expect(verdict(page)).to_contain_text("Yes: key 2 comes before query 3 and is not padding.")
    click_cell(page, "mask_bool", 2, 8)
    expect(verdict(page)).to_contain_text("No: key 9 is padding in sentence 1, and key 9 also comes after query 3")
    expect_address(page, query="3", key="9")


def test_a_reload_finds_mask_sentence_cell_and_companions(server, page):
    open_masks(page, server)
    page.get_by_role("button", name="Batch").click()
    page.locator(".st-key-mask_companion_2 input").fill("ab")
    page.locator(".st-key-mask_companion_2 input").press("Enter")
    wait_for_idle(page)
    page.keyboard.press("Escape")
    page.locator(".st-key-sentence").get_by_role("combobox").click()
    page.get_by_role("option", name="3: ab").click()
    wait_for_idle(page)
    click_cell(page, "mask_bool", 1, 5)
    expect(verdict(page)).to_contain_text("padding in sentence 3")
    said = verdict(page).inner_text()
    page.reload()
    wait_for_idle(page)
    wait_for_every_chart(page)
    expect(verdict(page)).to_have_text(re.compile(re.escape(said.split("?")[1].strip())))
    page.get_by_role("button", name="Batch").click()
    expect(page.locator(".st-key-mask_companion_2 input")).to_have_value("ab")
    expect(page.locator(".st-key-mask_bool .gtitle")).to_contain_text("Padding and causal, sentence 3")


def test_one_row_follows_the_cell_and_a_click_on_a_key(server, tab):
    page = open_masks(tab, server, f"{REVERSE}&query=4&key=2")
    page.get_by_role("radio", name="One row").click()
    wait_for_idle(page)
    wait_for_every_chart(page)
    expect(page.locator(".st-key-mask_row .gtitle")).to_contain_text("Layer 1, head 1: query 4")
    plot = page.locator(".st-key-mask_row .js-plotly-plot")
    comes_to(page, lambda: plot.evaluate("plot => plot._fullLayout.shapes[0].x0"), 0.5)
    closed = plot.locator(".barlayer .point").last
    closed.scroll_into_view_if_needed()
    wait_for_rest(page)
    box = closed.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    wait_for_idle(page)
    expect(verdict(page)).to_contain_text("No: key 12 is padding in sentence 1")
    expect(page.locator(".st-key-mask_bool")).to_have_count(0)  # only one section is sent


def test_the_checks_run_and_show_numbers(server, tab):
    page = open_masks(tab, server, f"{REVERSE}&masks=checks")
    said = page.get_by_test_id("stAlert")
    expect(said.filter(has_text="changed by exactly 0").filter(has_text="Without the causal mask")).to_be_visible()
    expect(said.filter(has_text="pads added to the source")).to_be_visible()
    expect(said.first).not_to_contain_text("Rows 1 to 5 changed")
    page.locator(".st-key-mask_changed").get_by_role("combobox").click()
    page.get_by_role("option").last.click()
    wait_for_idle(page)
    expect(said.first).to_contain_text("Rows 1 to 5 changed by exactly 0")


def test_the_companions_of_an_address_without_any_are_none(server, tab):
    open_masks(tab, server, f"{REVERSE}&with=")
    expect(tab.get_by_text("A single sentence needs no padding")).to_be_visible()


@pytest.mark.parametrize(
    ("section", "first"),
    [
        ("masks", "mask_bool"),
        pytest.param("one_row", "mask_row", marks=pytest.mark.deep),
        pytest.param("checks", "mask_causality", marks=pytest.mark.deep),
    ],
)
def test_the_first_chart_is_on_the_first_screen_and_nothing_is_wider_than_the_page(server, tab, section, first):
    page = open_masks(tab, server, f"masks?model=zh-en&src={FIFTEEN}&step=5&masks={section}")
    for scheme, width in in_both_windows(page):
        if width == 1280:
            chart_is_on_the_first_screen(page, f".st-key-{first} .gf-chart")
        overflow = page.evaluate(
            "() => { const main = document.querySelector('[data-testid=\"stMain\"]');"
            " return main.scrollWidth - main.clientWidth; }"
        )
        assert overflow <= 0
        cut = "rows => rows.filter(row => row.scrollWidth > row.clientWidth).map(row => row.innerText)"
        assert page.get_by_test_id("stMain").get_by_role("radiogroup").evaluate_all(cut) == []
        screenshot(page, f"masks-{section}-{width}-{scheme}", whole=True)
