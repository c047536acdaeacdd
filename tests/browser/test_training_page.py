"""The Training page and the strip of a head over training in a real browser: marks and tiles lead to snapshots."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, open_page, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import SETTLED_MS, address, expect_address
from tests.transformer.grown import STEPS, write_grown
from tools.serve import serve

LOSSES = ".st-key-training_losses"
CHARTS = (LOSSES, ".st-key-training_scores", ".st-key-training_rates")
STRIP = ".st-key-over_training"
HEAD = "?model=grown&src=abcdef&panel=training&kind=cross&layer=2&head=1"
MARK = """(chart, step) => {
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  const line = chart.data.findIndex((trace) => trace.customdata), at = chart.data[line].customdata.indexOf(step);
  const { x, y } = chart.calcdata[line][at];
  return [box.left + xaxis._offset + xaxis.c2p(x), box.top + yaxis._offset + yaxis.c2p(y)];
}"""
TILE = """(chart, tile) => {
  const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
  const { x0, x1, y0, y1 } = chart.layout.shapes[tile];
  return [box.left + xaxis._offset + xaxis.l2p((x0 + x1) / 2), box.top + yaxis._offset + yaxis.l2p((y0 + y1) / 2)];
}"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A server of a folder with a checkpoint and its snapshots."""
    folder = write_grown(tmp_path_factory.mktemp("grown"))
    with serve(log=folder / "app.log", arguments=["--checkpoints", str(folder)]) as running:
        yield running


def open_training(page, server, model="reverse"):
    turn_to(page, f"{server.url}/training?model={model}")
    page.locator(f"{LOSSES} .main-svg").first.wait_for(timeout=SETTLED_MS)
    return page


def wait_for_picture(page):
    """Until charts are drawn and nothing more comes."""
    expect(page.locator(".main-svg").first).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)


def press(page, chart, script, what):
    """Click where a script says that something of a chart is."""
    plot = page.locator(f"{chart} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    wait_for_rest(page)
    page.mouse.click(*plot.evaluate(script, what))
    wait_for_idle(page)


def framed(page):
    """The tile with the thickest frame."""
    return page.locator(f"{STRIP} .js-plotly-plot").evaluate(
        "chart => { const widths = chart.layout.shapes.map((one) => one.line.width);"
        " return Math.max(...widths) > 1 ? widths.indexOf(Math.max(...widths)) : -1; }"
    )


def columns(page):
    """How many tiles stand in the first row."""
    return page.locator(f"{STRIP} .js-plotly-plot").evaluate("chart => chart.layout.meta.film.columns")


def test_the_curves_are_drawn_and_hover_names_the_epoch(own_server, tab):
    page = open_training(tab, own_server)
    for chart in CHARTS:
        expect(page.locator(f"{chart} .main-svg").first).to_be_visible()
        picture = page.locator(f"{chart} [role=img]")
        assert re.search(r"The marked epoch is \d+ \(kept\)", picture.get_attribute("aria-label"))
        expect(page.locator(chart)).to_contain_text("kept: epoch")
    plot = page.locator(f"{LOSSES} .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    wait_for_rest(page)
    x, y = plot.evaluate(
        """chart => {
          const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect(), line = chart.calcdata[0];
          return [box.left + xaxis._offset + xaxis.c2p(line[1].x), box.top + yaxis._offset + yaxis.c2p(line[1].y)];
        }"""
    )
    page.mouse.move(x, y)
    hover = page.locator(f"{LOSSES} .hoverlayer")
    expect(hover).to_contain_text("Epoch 2, step ")
    expect(hover).to_contain_text("target pieces")


def test_a_command_of_markup_is_shown_letter_by_letter(own_server, tab):
    main = open_training(tab, own_server, NAME).get_by_test_id("stMain")
    expect(main).to_contain_text(f"train {IMAGE}")
    assert main.locator("pre img, pre script").count() == 0


def test_a_mark_on_a_curve_opens_its_snapshot(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/training?model=grown&src=abcdef&step=3")
    wait_for_picture(page)
    press(page, LOSSES, MARK, 219)
    expect_address(page, model="grown@219", src="abcdef", step="3")
    expect(page.locator(".st-key-training_time .gf-moment")).to_contain_text("Step 219")
    press(page, LOSSES, MARK, 1200)
    expect_address(page, model="grown@1200", src="abcdef", step="3")
    page.go_back()
    expect_address(page, model="grown@219", src="abcdef", step="3")


def test_a_tile_of_the_strip_opens_its_snapshot_at_the_same_head(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/attention{HEAD}&step=2")
    wait_for_picture(page)
    expect(page.locator(f"{STRIP} .annotation")).to_have_count(len(STEPS))
    assert framed(page) == -1
    press(page, STRIP, TILE, 2)
    expect_address(page, model="grown@219", panel="training", layer="2", head="1", step="2")
    comes_to(page, lambda: framed(page), 2)
    screenshot(page, "strip", whole=True)
    page.get_by_text("One map", exact=True).click()
    expect_address(page, model="grown@219", panel="head", layer="2", head="1", step="2")


def test_hover_names_the_snapshot_and_both_pieces(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/attention{HEAD}")
    wait_for_picture(page)
    plot = page.locator(f"{STRIP} .js-plotly-plot")
    wait_for_rest(page)
    page.mouse.move(*plot.evaluate(TILE, 4))
    hover = page.locator(f"{STRIP} .hoverlayer")
    expect(hover).to_contain_text("Step 2,208")
    expect(hover).to_contain_text("Source piece (key) 4: d")
    expect(hover).to_contain_text("weight")


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.deep), "dark"])
def test_the_strip_wraps_on_a_phone(grown, new_page, scheme):
    page = new_page(viewport=PHONE, visitor="mobile", color_scheme=scheme, has_touch=True, is_mobile=True)
    open_page(page, f"{grown.url}/attention{HEAD}")
    wait_for_picture(page)
    assert columns(page) in (2, 3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    bottoms = page.locator(STRIP).evaluate(
        "chart => [chart, chart.querySelector('.main-svg')].map((one) => one.getBoundingClientRect().bottom)"
    )
    assert bottoms[1] <= bottoms[0] + 1, "the chart is as high as its rows"
    screenshot(page, f"strip-phone-{scheme}", whole=True)


def test_a_row_and_a_cell_of_the_sentence_lead_to_their_snapshots(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/training?model=grown&src=abcdef&training=sentence")
    wait_for_picture(page)
    table = page.locator(".gf-grown tbody tr")
    expect(table).to_have_count(len(STEPS))
    expect(table.last.locator("b")).to_have_count(7)
    table.nth(1).get_by_role("link").click()
    expect_address(page, model="grown@10", src="abcdef", training="sentence")
    expect(page.locator(".gf-grown tr[aria-current]")).to_contain_text("10")
    cell = """(chart, [row, column]) => {
      const { xaxis, yaxis } = chart._fullLayout, box = chart.getBoundingClientRect();
      return [box.left + xaxis._offset + xaxis.l2p(column), box.top + yaxis._offset + yaxis.l2p(row)];
    }"""
    press(page, ".st-key-training_entropy", cell, [5, 3])
    expect_address(page, model="grown@1200", layer="2", head="2", training="sentence")
    screenshot(page, "sentence-over-training", whole=True)
    page.locator(".st-key-menu").get_by_role("link", name="Attention").click()
    expect(page.locator(".gf-stepper")).to_be_visible(timeout=SETTLED_MS)
    assert address(page)["model"] == "grown@1200"


@pytest.mark.parametrize(("scheme", "width"), [pytest.param("light", 1280, marks=pytest.mark.deep), ("dark", 390)])
def test_nothing_is_wider_than_the_window(own_server, new_page, width, scheme):
    touch = {"visitor": "mobile", "has_touch": True, "is_mobile": True} if width < 600 else {"shared": True}
    page = new_page(viewport={"width": width, "height": 720}, color_scheme=scheme, **touch)
    open_training(page, own_server)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for chart in CHARTS:
        # Both in one look: what unfolds pushes the charts down for a while.
        right, title, legend = page.locator(chart).evaluate(
            """chart => {
              const box = (part) => chart.querySelector(part)?.getBoundingClientRect(), title = box(".gtitle");
              return [title.right, title.bottom, box(".legend")?.top ?? Infinity];
            }"""
        )
        assert right <= width
        assert legend >= title - 2
