"""A chart is saved exactly, tells each click once, keeps its zoom in the large view; no label is markup or formula."""

import csv
import io
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from playwright.sync_api import expect

from glassformer import charts
from tests.browser.figures import ALLOWED, COUNT, ENTROPIES, HOSTILE, REASON, SHARES, WEIGHTS, all_figures
from tests.browser.helpers import PHONE, VIEWPORT, chart_menu, comes_to, open_page, saved, wait_for_idle
from tests.browser.idle import wait_for_rest

FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
FIRST_CHART_MS = 60_000  # Plotly's script is 1.5 MB, and the machine may be busy
LARGE = "dialog.gf-chart-dialog[open]"
RANGES = "chart => ['xaxis', 'yaxis'].flatMap(name => chart._fullLayout[name].range)"
# Where a cell of a chart of several panels is on the screen.
PLACE = """(chart, [axes, column, row]) => {
  const { [`xaxis${axes}`]: x, [`yaxis${axes}`]: y } = chart._fullLayout, box = chart.getBoundingClientRect();
  return [box.left + x._offset + x.c2p(column), box.top + y._offset + y.c2p(row)]; }"""


def plot(page, key):
    return page.get_by_role("img", name=key, exact=True)


def frame(page, key):
    """A chart with its buttons and its sentence."""
    return page.locator(f".gf-chart-frame:has([role=img][aria-label='{key}'])")


def drawn_all(page, app):
    open_page(page, app.url)
    expect(plot(page, "stated").locator(".main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    wait_for_idle(page)


@pytest.fixture(scope="module")
def figures_tab(app, profile):
    """Every kind of chart with hostile labels, drawn once for all tests, which leave it as it was."""
    uncaught, page = [], profile.new_page()
    page.on("pageerror", lambda error: uncaught.append(error))
    drawn_all(page, app)
    yield page
    page.close()
    assert not uncaught


@pytest.fixture
def figures(figures_tab):
    figures_tab.bring_to_front()
    return figures_tab


def table(page, key):
    """The data as two readers see it, which must agree: a list of dicts, all text."""
    content, name = saved(page, frame(page, key), "CSV")
    assert name == f"{key}.csv"
    assert content.startswith(b"\xef\xbb\xbf")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    options = {"encoding": "utf-8-sig", "dtype": str, "keep_default_na": False, "lineterminator": None}
    assert pd.read_csv(io.BytesIO(content), **options).to_dict("records") == rows
    return rows


def safe(text):
    """A text as it has to stand in a table that a spreadsheet may open."""
    return f"'{text}" if FORMULA.match(text) else text


def test_all_charts_are_saved_cell_by_cell_and_exactly_and_no_label_is_markup(figures, new_page, tmp_path):
    bars_curves_lines_and_panels_are_saved_as_they_are_named(figures)
    for key in ("plain_map", "log_map"):
        rows = table(figures, key)
        assert list(rows[0]) == ["<i>Query</i> number", "<i>Query</i>", "'=Key number", "'=Key", "weight", "note"]
        for (query, place), row in zip(np.ndindex(COUNT, COUNT), rows, strict=True):
            number, piece, key_number, key_piece, value, note = row.values()
            weight = WEIGHTS[query, place]
            assert (number, piece) == (str(query + 1), safe(HOSTILE[query]))
            assert (key_number, key_piece) == (str(place + 1), safe(HOSTILE[place]))
            if not ALLOWED[query, place]:
                assert (value, note) == ("", REASON)
            elif np.isnan(weight):
                assert (value, note) == ("", "not a finite number")
            else:
                assert (np.float32(value), note) == (weight, "")  # exactly, although it is short
                assert len(value.lstrip("0.").split("e")[0]) <= 9
    no_label_is_markup_on_the_page_in_a_picture_or_in_an_exported_page(figures, new_page, tmp_path)


def bars_curves_lines_and_panels_are_saved_as_they_are_named(figures):
    bars = table(figures, "bars")
    assert [row["token"] for row in bars] == [*HOSTILE[20:24], *HOSTILE[:4]]
    assert [float(row["probability"]) for row in bars] == SHARES.tolist()
    assert [row["note"] for row in bars] == ["", "chosen", *[""] * 6]
    curve = table(figures, "curve")
    assert [row["text"] for row in curve] == [safe(piece) for piece in HOSTILE]
    assert [float(row["Entropy (bits)"]) for row in curve] == ENTROPIES.tolist()
    assert [row["Step"] for row in curve] == [str(step) for step in range(1, COUNT + 1)]
    lines = table(figures, "lines")
    assert [(row["series"], row["Epoch"], row["Loss (nats per token)"]) for row in lines] == [
        ("Dev loss", "1", "2.5"), ("Dev loss", "2", "2.25"), ("Dev loss", "3", "2.125"),
        ("Training loss", "1", "3"), ("Training loss", "2", ""), ("Training loss", "3", "2"),
    ]  # fmt: skip
    panels = table(figures, "panels")
    assert [row["series"] for row in panels] == ["first"] * 16 + ["second"] * 16 + ["line"] * 2
    second = np.array([row["second"] for row in panels[16:32]], dtype=np.float32).reshape(4, 4)
    np.testing.assert_array_equal(second, WEIGHTS[:4, 4:8])
    assert [panels[17]["Row"], panels[17]["Two"], panels[17]["One"]] == ["<s>", "</s>", ""]
    stated = table(figures, "stated")
    assert [list(row.values()) for row in stated] == [["'=1+1", "2"], ["▁x", "-0.5"], ["'-", ""]]
    assert list(stated[0]) == ["what", "'=how much"]


def pictures_have_the_theme_s_background(page):
    page.evaluate("window.keptPlot = document.querySelector('[aria-label=curve]')")
    for is_dark in (True, False):
        page.emulate_media(color_scheme="dark" if is_dark else "light")
        expect(page.locator(".gf-chart-frame").first).to_have_attribute("data-theme", "dark" if is_dark else "light")
        wait_for_rest(page)
        content, name = saved(page, frame(page, "curve"), "PNG")
        assert name == "curve.png"
        picture = Image.open(io.BytesIO(content)).convert("L")
        assert (picture.getpixel((2, 2)) < 60) is is_dark
        assert picture.width == 2 * round(plot(page, "curve").bounding_box()["width"])
        assert saved(page, frame(page, "curve"), "SVG")[0].startswith(b"<svg")
    assert page.evaluate("window.keptPlot.isConnected")


def no_label_is_markup_on_the_page_in_a_picture_or_in_an_exported_page(figures, new_page, tmp_path):
    pictures_have_the_theme_s_background(figures)
    assert figures.evaluate("window.hacked") is None
    assert figures.locator(".gf-chart-frame :is(img, a[href*=example])").count() == 0
    expect(plot(figures, "plain_map").locator(".gtitle")).to_have_text("=A <b>map</b> of %{pieces}")
    svg = ElementTree.fromstring(saved(figures, frame(figures, "plain_map"), "SVG")[0])
    names = {element.tag.rpartition("}")[2] for element in svg.iter()}
    assert "text" in names
    assert not names & {"script", "img", "a", "s", "br", "b"}
    texts = ["".join(element.itertext()) for element in svg.iter() if element.tag.endswith("}text")]
    assert {"</script><scr…", "<b>x</b>", "&lt;", "=A <b>map</b> of %{pieces}"} <= set(texts)
    figure = charts.heatmap(
        np.eye(COUNT, dtype=np.float32), queries=HOSTILE, keys=HOSTILE,
        title="</script><script>window.hacked=1</script>", mask_reason="</script><script>window.hacked=1</script>",
        value_name="</script><script>window.hacked=1</script>", allowed=ALLOWED,
    )  # fmt: skip
    target = tmp_path / "map.html"
    target.write_text(figure.to_html(include_plotlyjs=True), encoding="utf-8")
    page = new_page()
    page.goto(target.as_uri())
    expect(page.locator(".gtitle")).to_have_text("</script><script>window.hacked=1</script>", timeout=FIRST_CHART_MS)
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


# ---------------------------------------------------------------- clicks, hover, width


def place_in(page, key, axes, column, row):
    plot(page, key).evaluate("chart => chart.scrollIntoView({ block: 'center' })")
    wait_for_rest(page)
    return plot(page, key).evaluate(PLACE, [axes, column, row])


def test_each_click_is_told_once_whenever_the_button_is_let_go(app, new_page):
    """Plotly looks at what is pointed at once in 50 ms, and finds nothing while a button is down."""
    page = new_page(locale="en-US")  # with a clock of its own
    drawn_all(page, app)
    page.mouse.click(*place_in(page, "panels", "2", 2, 3))
    clicks = [("panels", 1, (3, 2))]
    expect(page.get_by_text(f"clicks: {clicks}", exact=True)).to_be_visible()
    wait_for_idle(page)
    for after in (0, 49):
        x, y = place_in(page, "plain_map", "", 3, 5)
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)  # it looks in 50 ms again
        page.mouse.down()
        page.clock.run_for(50 + after)
        page.mouse.up()
        page.clock.resume()
        clicks.append(("plain_map", 0, (5, 3)))
        expect(page.get_by_text(f"clicks: {clicks}", exact=True)).to_be_visible()
        page.mouse.move(0, 0)
        wait_for_idle(page)


def test_hover_says_small_numbers_reasons_and_pieces_and_a_chart_follows_its_place(figures):
    for key in ("plain_map", "log_map"):
        figures.mouse.move(*place_in(figures, key, "", 2, 4))
        expect(plot(figures, key).locator(".hoverlayer")).to_contain_text("weight 1e-7")
    said = plot(figures, "plain_map").locator(".hoverlayer")
    for place, piece in enumerate(HOSTILE[:9]):
        figures.mouse.move(*place_in(figures, "plain_map", "", COUNT - 1, place))
        expect(said).to_contain_text(f"<i>Query</i> {place + 1}: {piece}")
        expect(said).to_contain_text(REASON)
        assert "weight" not in said.text_content()
    # While a page is laid out a chart's place may be 16 pixels wide, where Plotly places titles at infinity.
    complaints = []
    figures.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    root, before = frame(figures, "bars").locator(".gf-chart"), plot(figures, "bars").bounding_box()["width"]
    for width in ("16px", ""):
        root.evaluate("(root, width) => { root.style.width = width; }", width)
        wait_for_rest(figures)
    wait_for_width(figures, "bars", lambda width: abs(width - before) <= 2)
    assert complaints == []


# ---------------------------------------------------------------- the large view


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
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(color_scheme="light")
    wait_for_idle(page)
