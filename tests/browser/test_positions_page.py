"""On Positions what one chooses stands in the address, and outlives an empty sentence."""

from playwright.sync_api import expect

from tests.browser.helpers import click_chart, comes_to, drawn, turn_to
from tests.browser.story import charts_are_drawn, expect_address, type_source, wait_for_charts

# The middle of a bar's height, or a mark, of a curve.
AT = """([key, curve, place]) => {
  const chart = document.querySelector(`.st-key-${key} .js-plotly-plot`), trace = chart._fullData[curve];
  if (trace.type !== "bar") return [trace.x[place], trace.y[place]];
  return [trace.x[place] + [chart.calcdata[curve][0].t.poffset].flat()[0] + 0.05, trace.y[place] / 2];
}"""


def choose(page, group, option):
    page.get_by_role("radiogroup", name=group).get_by_text(option, exact=True).click()
    charts_are_drawn(page)


def click_mark(page, key, curve, place):
    click_chart(page, key, *page.evaluate(AT, [key, curve, place]))


def test_a_walk_through_the_parts(server, page):
    turn_to(page, f"{server.url}/positions?model=reverse&src=abcdef")
    wait_for_charts(page)
    choose(page, "Part", "Similarity")
    before = drawn(page, "position_similarity")
    choose(page, "Measure", "Cosine")
    comes_to(page, lambda: drawn(page, "position_similarity") != before, expected=True)
    cosines = drawn(page, "position_similarity")
    assert all(abs(cosines[place][place] - 1) < 1e-6 for place in range(13))
    choose(page, "Part", "Shift")
    page.locator(".st-key-shift").get_by_role("slider").press("ArrowRight")
    expect(page.locator(".st-key-position_points")).to_contain_text("shifted by 2")
    expect_address(page, shift="2")
    choose(page, "Part", "Sentence")
    click_mark(page, "embedding_strengths", 1, 3)
    expect(page.locator(".st-key-embedding_rows")).to_contain_text("Initial vector of token 4, d")
    expect_address(page, key="4")
    type_source(page, "<b>$x$</b>")
    letters = page.locator(".st-key-embedding_strengths .xtick text")
    said = lambda: "".join(letters.all_text_contents()).replace("▁", "").replace("</s>", "")  # noqa: E731
    comes_to(page, said, "<b>$x$</b>")
    assert page.locator(".st-key-embedding_strengths :is(b, img)").count() == 0
    type_source(page, "")
    choose(page, "Part", "Shift")
    expect(page.locator(".st-key-position_points")).to_be_visible()  # it needs no sentence
