"""How one weight came to be is followed from key to key in every chart, and after a step."""

import re

import pytest
from playwright.sync_api import Page, expect

from glassformer.attention import one_weight_pictures as pictures
from glassformer.attention.one_weight_panel import TABLE
from tests.browser.helpers import click_chart, comes_to, in_both_windows, turn_to, wait_for_idle
from tests.browser.made_up import NAME
from tests.browser.story import SETTLED_MS, address, expect_address, wait_for_charts

ALL = (pictures.head_map, pictures.products, pictures.scores, pictures.weights, pictures.values, pictures.lengths)
MAP, PRODUCTS, SCORES, WEIGHTS, VALUES, NORMS = (one.key for one in ALL)
WALK = "model=reverse&src=glass&panel=walk"
WIDE = """() => [...document.querySelectorAll(
  '[data-testid="stMain"], .katex-display, [class*="st-key-walk"]'
)].filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1).map(part => part.className)"""


def walk(page, own_server, parameters):
    turn_to(page, f"{own_server.url}/attention?{parameters}")
    wait_for_charts(page)
    return page


def framed(page: Page, key: str) -> list[float]:
    """Middle of the last frame of a chart, as (x, y)."""
    return page.locator(f".st-key-{key} .js-plotly-plot").first.evaluate(
        """chart => { const shape = chart.layout.shapes.at(-1);
          return [(shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2]; }"""
    )


def test_a_weight_is_chosen_in_any_chart_followed_in_all_and_markup_is_shown_as_it_is(own_server, page):
    walk(page, own_server, WALK)
    assert not {"layer", "head", "query", "key"} & address(page).keys()
    summary = page.get_by_text(re.compile("^In layer"))
    layer, query = re.findall(r"In layer (\d).*the query (.*?) gives the key", summary.text_content())[0]
    click_chart(page, NORMS, 2)
    expect_address(page, layer=layer, head="3")
    expect(summary).to_contain_text(f"layer {layer}, head 3")
    expect(summary).to_contain_text(f"the query {query} gives the key")

    walk(page, own_server, f"{WALK}&layer=2&head=1")
    expect(summary).to_contain_text("the query <s> → s gives the key")
    page.get_by_label("Last step").click()
    expect(summary).to_contain_text("the query g → </s> gives the key", timeout=SETTLED_MS)
    wait_for_idle(page)
    click_chart(page, SCORES, 1)  # the column is what is clicked
    expect_address(page, key="2")
    expect(summary).to_contain_text("gives the key l a weight")
    for other in (SCORES, WEIGHTS, MAP):
        comes_to(page, lambda other=other: framed(page, other)[0], pytest.approx(1))
    comes_to(page, lambda: framed(page, VALUES)[1], pytest.approx(1))
    click_chart(page, VALUES, 3, 2)
    expect_address(page, key="3")
    expect(page.locator(f".st-key-{TABLE} strong").first).to_have_text("3: a")
    click_chart(page, MAP, 2, 4)
    expect_address(page, query="5", key="3")
    page.get_by_label("Back one step").click()
    page.wait_for_function("location.search.includes('step=5')", timeout=SETTLED_MS)
    wait_for_idle(page)
    expect(summary).to_contain_text("the query l → g gives the key")
    markup_is_shown_letter_by_letter_and_nothing_overflows(own_server, page)


def markup_is_shown_letter_by_letter_and_nothing_overflows(own_server, page):
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    src = "%3Cimg/src=x/onerror=alert(1)%3E$x%5E2$%60c%60:red[x]**b**"
    walk(page, own_server, f"lang=en&model={NAME}&src={src}&max=60&layer=1&head=1&step=20&panel=walk&kind=encoder")
    said = page.locator(f".st-key-{TABLE}").inner_text().replace("\u2060", "")
    for piece in ("<img/src=x/onerror=alert(1)>", "**b**", "$x^2$", "`c`", ":red[x]"):
        assert f": {piece}" in said
    assert not dialogs
    for _ in in_both_windows(page):
        assert page.evaluate(WIDE) == []
        assert page.locator(".katex-error").count() == 0
        assert page.locator(f".st-key-{PRODUCTS} .js-plotly-plot").evaluate("chart => chart.clientHeight") <= 300
