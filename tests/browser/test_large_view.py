"""A chart in the large view keeps its zoom and tells clicks as on the page, and gives the focus back."""

from playwright.sync_api import expect

from tests.browser.components import frame, plot
from tests.browser.figures import all_figures
from tests.browser.helpers import PHONE, chart_menu, comes_to
from tests.browser.idle import wait_for_rest

RANGES = "chart => ['xaxis', 'yaxis'].flatMap(name => chart._fullLayout[name].range)"
LARGE = "dialog.gf-chart-dialog[open]"


def zoom_in(page, key):
    wait_for_rest(page)
    box = plot(page, key).locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.7, steps=5)
    page.mouse.up()


def narrower(one, other):
    return one[1] - one[0] < other[1] - other[0]


def wait_for_width(page, key, fits):
    """Wait until a chart is drawn as wide as that."""
    drawn = plot(page, key).locator(".main-svg").first
    comes_to(page, lambda: fits(drawn.bounding_box()["width"]), expected=True)


def test_expanding_keeps_the_zoom_and_focus_comes_back(figures):
    chart, buttons = plot(figures, "plain_map"), frame(figures, "plain_map").get_by_role("button")
    reset, large = (buttons.filter(has_text=text) for text in ("Reset zoom", "⋯"))
    expect(reset).to_be_hidden()
    whole = chart.evaluate(RANGES)
    zoom_in(figures, "plain_map")
    expect(reset).to_be_visible()
    comes_to(figures, lambda: narrower(chart.evaluate(RANGES), whole), expected=True)
    zoomed, small = chart.evaluate(RANGES), chart.bounding_box()
    large.focus()
    figures.keyboard.press("Enter")
    figures.keyboard.press("Enter")  # its first entry
    expect(figures.locator(LARGE)).to_be_visible()
    large.click()
    expect(figures.get_by_role("menuitem", name="CSV").filter(visible=True)).to_be_focused()
    figures.keyboard.press("Escape")  # closes the menu alone
    expect(large).to_be_focused()
    expect(figures.locator(LARGE)).to_be_visible()
    wait_for_width(figures, "plain_map", lambda width: width > small["width"] + 100)
    comes_to(figures, lambda: chart.evaluate(RANGES), zoomed)
    zoom_in(figures, "plain_map")  # a chart is as alive there as on the page
    comes_to(figures, lambda: narrower(chart.evaluate(RANGES), zoomed), expected=True)
    closer = chart.evaluate(RANGES)
    figures.keyboard.press("Escape")
    expect(figures.locator(LARGE)).to_have_count(0)
    expect(large).to_be_focused()
    wait_for_width(figures, "plain_map", lambda width: abs(width - small["width"]) < 2)
    comes_to(figures, lambda: chart.evaluate(RANGES), closer)
    comes_to(figures, lambda: chart.bounding_box()["height"], small["height"])
    reset.click()
    expect(reset).to_be_hidden()
    comes_to(figures, lambda: chart.evaluate(RANGES), whole)
    chart_menu(frame(figures, "bars"), "Show this chart large")
    expect(figures.locator(LARGE)).to_be_visible()
    figures.mouse.click(3, 3)  # beside it
    expect(figures.locator(LARGE)).to_have_count(0)
    a_panel_tells_its_trace_and_hover_small_numbers_and_the_weight_behind_a_logarithm(figures)
    in_the_dark_of_a_phone_buttons_cover_nothing_and_every_panel_is_painted(figures)


def in_the_dark_of_a_phone_buttons_cover_nothing_and_every_panel_is_painted(page):
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    wait_for_rest(page)
    for key in all_figures():
        group = frame(page, key).locator(".gf-tools").bounding_box()
        chart = plot(page, key).bounding_box()
        assert 0 <= group["x"] <= 390 - group["width"]
        assert group["y"] >= chart["y"] + chart["height"] - 1
    chart = plot(page, "panels")
    title = chart.locator(".gtitle").evaluate("node => getComputedStyle(node).fill")
    texts = chart.locator(":is(.xtick, .ytick, .x2tick, .y2tick, .x3tick, .y3tick, .annotation) text")
    expect(texts.nth(19)).to_be_attached()
    assert set(texts.evaluate_all("nodes => nodes.map(node => getComputedStyle(node).fill)")) == {title}


# ---------------------------------------------------------------- several axes, small numbers


def place_in(page, key, axes, column, row):
    """Where a cell of a chart of several panels is on the screen."""
    plot(page, key).evaluate("chart => chart.scrollIntoView({ block: 'center' })")
    wait_for_rest(page)
    return plot(page, key).evaluate(
        """(chart, [axes, column, row]) => {
          const { [`xaxis${axes}`]: x, [`yaxis${axes}`]: y } = chart._fullLayout, box = chart.getBoundingClientRect();
          return [box.left + x._offset + x.c2p(column), box.top + y._offset + y.c2p(row)];
        }""",
        [axes, column, row],
    )


def a_panel_tells_its_trace_and_hover_small_numbers_and_the_weight_behind_a_logarithm(figures):
    figures.mouse.click(*place_in(figures, "panels", "2", 2, 3))
    expect(figures.get_by_text("panels: curve 1, index (3, 2)")).to_be_visible()
    for key in ("plain_map", "log_map"):
        figures.mouse.move(*place_in(figures, key, "", 2, 4))
        expect(plot(figures, key).locator(".hoverlayer")).to_contain_text("weight 1e-7")
