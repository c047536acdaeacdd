"""How one weight came to be, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from glassformer.attention.one_weight import one_weight_pictures as pictures
from glassformer.attention.one_weight.one_weight_panel import TABLE
from tests.browser.helpers import comes_to, in_both_windows, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.made_up import NAME
from tests.browser.story import SETTLED_MS, address, expect_address, wait_for_charts

MAP, PRODUCTS, SCORES, WEIGHTS, VALUES, NORMS, *MAPS = (
    one.key
    for one in (
        *(pictures.head_map, pictures.products, pictures.scores, pictures.weights, pictures.values, pictures.lengths),
        *pictures.VECTORS,
    )
)
WALK = "model=reverse&src=glass&panel=walk"


def walk(page, own_server, parameters, *, base=WALK):
    turn_to(page, f"{own_server.url}/attention?{base}&{parameters}")
    wait_for_charts(page)
    return page


def click(page: Page, key: str, x: float, y: float | None) -> None:
    """Click a place of a chart, in the units of its axes; without `y` half way up."""
    chart = page.locator(f".st-key-{key} .js-plotly-plot").first
    chart.scroll_into_view_if_needed()
    wait_for_rest(page)
    left, top = chart.evaluate(
        """(chart, [x, y]) => {
          const { xaxis, yaxis } = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          const up = y === null ? yaxis._length / 2 : yaxis.c2p(y);
          return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + up];
        }""",
        [x, y],
    )
    page.mouse.move(left - 1, top)
    page.mouse.move(left, top)
    expect(chart.locator(".hoverlayer .hovertext").first).to_be_visible()  # Plotly clicks on what it hovers
    page.mouse.click(left, top)
    page.mouse.move(0, 0)
    wait_for_idle(page)


def framed(page: Page, key: str) -> list[float]:
    """Middle of the last frame of a chart, as (x, y)."""
    return page.locator(f".st-key-{key} .js-plotly-plot").first.evaluate(
        """chart => { const shape = chart.layout.shapes.at(-1);
          return [(shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2]; }"""
    )


def summary(page: Page):
    return page.get_by_text(re.compile("^In layer"))


def test_a_key_that_is_clicked_is_followed_in_every_chart(own_server, tab):
    page = walk(tab, own_server, "layer=2&head=1&step=3")
    for chart, key in ((SCORES, 1), (WEIGHTS, 4)):  # both have low bars there: the column is what is clicked
        click(page, chart, key, None)
        expect(page).to_have_url(re.compile(rf"[?&]key={key + 1}(&|$)"), timeout=SETTLED_MS)
        wait_for_idle(page)
        expect(summary(page)).to_contain_text(f"gives the key {'glass'[key]} a weight")
        for other in (SCORES, WEIGHTS, MAP):
            comes_to(page, lambda other=other: framed(page, other)[0], pytest.approx(key))
        comes_to(page, lambda: framed(page, VALUES)[1], pytest.approx(key))
    click(page, VALUES, 3, 2)
    expect(page).to_have_url(re.compile(r"[?&]key=3(&|$)"), timeout=SETTLED_MS)
    expect(page.locator(f".st-key-{TABLE} strong").first).to_have_text("3: a")


def test_a_cell_of_the_map_chooses_both_and_a_step_does_not_move_it(own_server, tab):
    page = walk(tab, own_server, "layer=2&head=1")
    click(page, MAP, 2, 4)
    expect(page).to_have_url(re.compile(r"[?&]query=5&key=3(&|$)"), timeout=SETTLED_MS)
    page.get_by_label("Next step").click()
    page.wait_for_function("location.search.includes('step=2')", timeout=SETTLED_MS)
    wait_for_idle(page)
    expect(summary(page)).to_contain_text("the query l → g gives the key")
    page.reload()
    wait_for_idle(page)
    wait_for_charts(page)
    comes_to(page, lambda: framed(page, MAP), pytest.approx([2, 4]))


def test_without_a_choice_the_row_follows_the_step(own_server, tab):
    page = walk(tab, own_server, "layer=1&head=2")
    expect(summary(page)).to_contain_text("the query <s> → s gives the key")
    page.get_by_label("Last step").click()
    expect(summary(page)).to_contain_text("the query g → </s> gives the key", timeout=SETTLED_MS)


def test_it_opens_on_a_weight_and_a_head_is_taken_from_its_bar(own_server, tab):
    turn_to(tab, f"{own_server.url}/attention?{WALK}")
    wait_for_charts(tab)
    assert not {"layer", "head", "query", "key"} & address(tab).keys()
    expect(summary(tab)).to_be_visible()
    layer, query = re.findall(r"In layer (\d).*the query (.*?) gives the key", summary(tab).inner_text())[0]
    click(tab, NORMS, 2, None)
    expect_address(tab, layer=layer, head="3")
    expect(summary(tab)).to_contain_text(f"layer {layer}, head 3")
    expect(summary(tab)).to_contain_text(f"the query {query} gives the key")


def test_vectors_come_when_they_are_asked_for_and_can_be_clicked(own_server, page):
    walk(page, own_server, "layer=1&head=1&kind=encoder")
    assert page.locator(f".st-key-{MAPS[0]}").count() == 0
    page.get_by_text("q, k and v of every token").click()
    wait_for_idle(page)
    wait_for_charts(page)
    wait_for_rest(page)
    click(page, MAPS[0], 4, 3)
    click(page, MAPS[2], 4, 1)
    expect_address(page, query="4", key="2")
    assert page.locator(f".st-key-{MAPS[1]}").count() == 1  # it stays open


def test_markup_is_shown_letter_by_letter_and_nothing_overflows(own_server, new_page):
    page = new_page(fresh=True)
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    src = "%3Cimg/src=x/onerror=alert(1)%3E$x%5E2$%60c%60:red[x]**b**"
    walk(
        page,
        own_server,
        f"model={NAME}&src={src}&max=60&layer=1&head=1&step=20&panel=walk&kind=encoder",
        base="lang=en",
    )
    said = page.locator(f".st-key-{TABLE}").inner_text().replace("\u2060", "")
    for piece in ("<img/src=x/onerror=alert(1)>", "**b**", "$x^2$", "`c`", ":red[x]"):
        assert f": {piece}" in said
    assert not dialogs
    for _ in in_both_windows(page):
        wide = page.evaluate(
            """() => [...document.querySelectorAll(
              '[data-testid="stMain"], .katex-display, [class*="st-key-walk"]'
            )].filter(part => part.clientWidth && part.scrollWidth > part.clientWidth + 1)
              .map(part => part.className)"""
        )
        assert wide == []
        assert page.locator(".katex-error").count() == 0
        heights = page.locator(f".st-key-{PRODUCTS} .js-plotly-plot").evaluate("chart => chart.clientHeight")
        assert heights <= 300
