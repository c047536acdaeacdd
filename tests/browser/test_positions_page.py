"""The Positions page in a real browser: its parts, clicks, the address, both themes, a phone."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, in_both_windows, screenshot, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN, chart_is_on_the_first_screen, expect_address, type_source, wait_for_charts

PARTS = {
    "table": ("position_table", "position_curves", "position_waves"),
    "similarity": ("position_similarity", "position_distance"),
    "shift": ("position_points", "position_errors"),
    "sentence": ("embedding_strengths", "embedding_rows"),
}
LONG = "我喜欢喝咖啡你能帮我一下吗他每天坐公共汽车去学校如果明天下雨我们就待在家里" * 4
_DRAWN = """key => { const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  return chart._fullData.map(trace => ({ name: trace.name, type: trace.type, x: Array.from(trace.x ?? []),
    y: Array.from(trace.y ?? []), z: trace.z ? Array.from(trace.z, row => Array.from(row)) : [] })); }"""
_PLACE = """([key, curve, place]) => { const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`);
  const { xaxis, yaxis } = chart._fullLayout, trace = chart._fullData[curve], box = chart.getBoundingClientRect();
  const bar = trace.type === "bar", offset = bar ? [chart.calcdata[curve][0].t.poffset].flat()[0] : 0;
  return [box.left + xaxis._offset + xaxis.d2p(trace.x[place] + offset + (bar ? 0.05 : 0)),
    box.top + yaxis._offset + yaxis.d2p(trace.y[place] * (bar ? 0.5 : 1))]; }"""


def open_part(page, server, query=""):
    turn_to(page, f"{server.url}/positions{query}")
    wait_for_charts(page)
    return page


def chart(page, key):
    return page.locator(f".st-key-{key}")


def drawn(page, key):
    return page.evaluate(_DRAWN, key)


def choose(page, group, option):
    page.get_by_role("radiogroup", name=group).get_by_text(option, exact=True).click()
    wait_for_idle(page)
    wait_for_charts(page)


def click_mark(page, key, curve, place):
    chart(page, key).scroll_into_view_if_needed()
    wait_for_rest(page)
    x, y = page.evaluate(_PLACE, [key, curve, place])
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    wait_for_idle(page)


def test_a_walk_through_the_parts_and_back_by_the_address(server, page):
    open_part(page, server, "?model=reverse")
    for key in PARTS["table"]:
        expect(chart(page, key)).to_be_visible()
    choose(page, "Part", "Similarity")
    before = drawn(page, "position_similarity")[0]["z"]
    choose(page, "Measure", "Cosine")
    comes_to(page, lambda: drawn(page, "position_similarity")[0]["z"] != before, expected=True)
    cosines = drawn(page, "position_similarity")[0]["z"]
    assert all(abs(cosines[place][place] - 1) < 1e-6 for place in range(13))
    choose(page, "Part", "Shift")
    click_mark(page, "position_errors", 1, 3)
    expect(chart(page, "position_points")).to_contain_text("shifted by 4")
    expect_address(page, shift="4")
    choose(page, "Side", "Target")
    shown = drawn(page, "position_errors")
    open_part(page, server, page.url.partition("positions")[2])
    expect(chart(page, "position_points")).to_contain_text("shifted by 4")
    comes_to(page, lambda: drawn(page, "position_errors"), shown)


def test_a_clicked_bar_chooses_its_token(server, tab):
    page = open_part(tab, server, "?model=reverse&src=abcdef&positions=sentence")
    click_mark(page, "embedding_strengths", 1, 3)
    expect(chart(page, "embedding_rows")).to_contain_text("Initial vector of token 4, d")
    expect_address(page, key="4")
    page.reload()
    wait_for_idle(page)
    expect(chart(page, "embedding_rows")).to_contain_text("Initial vector of token 4, d")


def test_a_zoom_survives_a_shift(server, page):
    open_part(page, server, "?positions=shift")
    wanted = [1e-8, 40]
    page.evaluate(
        """async () => { const chart = document.querySelector(".st-key-position_errors .js-plotly-plot");
          const Plotly = await [...window.__glassformerPlotly.values()][0];
          await Plotly.relayout(chart, {"xaxis.range": [0, 40]}); }"""
    )
    click_mark(page, "position_errors", 0, 4)
    found = page.evaluate(
        "() => document.querySelector('.st-key-position_errors .js-plotly-plot')._fullLayout.xaxis.range"
    )
    assert found[1] == wanted[1]


def test_without_a_sentence_the_table_is_still_there(server, page):
    open_part(page, server)
    type_source(page, "")
    expect(chart(page, "position_table")).to_be_visible()
    choose(page, "Part", "Shift")
    expect(chart(page, "position_points")).to_be_visible()


def test_markup_is_shown_letter_by_letter(server, tab):
    page = open_part(tab, server, "?positions=sentence&src=%3Cb%3E%24x%24%3C%2Fb%3E")
    letters = chart(page, "embedding_strengths").locator(".xtick text")
    shown = "".join(letters.all_text_contents())
    assert shown.replace("▁", "").replace("</s>", "") == "<b>$x$</b>"
    assert chart(page, "embedding_strengths").locator("b, img").count() == 0


@pytest.mark.parametrize(
    "part", ["sentence", *(pytest.param(part, marks=pytest.mark.deep) for part in ("table", "similarity", "shift"))]
)
def test_the_first_chart_is_on_the_first_screen_and_nothing_overflows(server, tab, part):
    source = LONG if part == "sentence" else FIFTEEN
    page = open_part(tab, server, f"?model=zh-en&positions={part}&src={source}&step=5")
    for scheme, width in in_both_windows(page):
        if part != "sentence" and width == 1280:  # that of a sentence is measured with one that is not so long
            chart_is_on_the_first_screen(page, f".st-key-{PARTS[part][0]} .gf-chart")
        main = page.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        for key in PARTS[part]:
            box = chart(page, key).locator(".main-svg").first.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        screenshot(page, f"positions-{part}-{width}-{scheme}", whole=True)
