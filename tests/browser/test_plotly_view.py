"""A chart marks the step at once, tells each click once, takes nothing for markup, and says what it lacks."""

import ast
import re

from playwright.sync_api import expect

from glassformer.components.custom_component import PLOTLY_FILE
from tests.browser.components import CELLS, FIRST_CHART_MS, cell_centre, choose_run, plot
from tests.browser.helpers import VIEWPORT, comes_to, open_page, wait_for_idle
from tests.browser.idle import wait_for_rest

HOSTILE = (
    "<s>", "</s>", "<br>", "<b>x</b>", "&lt;", "&amp;", "$x^2$", "_a_", "`b`", "%{x}", "%{customdata[0]}",
    "<a href='https://example.org'>go</a>",
)  # fmt: skip


MAP = "document.querySelector(\"[aria-label='An attention map.']\")"


def frames(page):
    return page.evaluate(f"{MAP}.layout.shapes.map(({{ y0, y1 }}) => [y0, y1])")


def test_a_chart_marks_the_step_at_once_tells_clicks_and_follows_theme_and_width(stage):
    comes_to(stage, lambda: frames(stage), [[-0.5, 0.5]])
    stage.evaluate("document.activeElement.blur()")
    stage.evaluate(
        f"""() => {{
          document.addEventListener("glassformer-step", () => {{
            const heard = document.body.innerText.includes("python: plain step 1");
            window.seen = [{MAP}.layout.shapes[0].y0, heard];
          }});
        }}"""
    )
    stage.keyboard.press("ArrowRight")
    assert stage.evaluate("window.seen") == [0.5, False]
    expect(stage.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    wait_for_idle(stage)
    comes_to(stage, lambda: frames(stage), [[0.5, 1.5]])
    clicks_are_told_once_each_and_a_masked_cell_says_why(stage)
    charts_follow_theme_and_width_and_wait_for_a_place(stage)


def clicks_are_told_once_each_and_a_masked_cell_says_why(stage):
    before = ast.literal_eval(stage.get_by_text(re.compile("^clicks: ")).inner_text().partition(": ")[2])
    for count in (1, 2):
        stage.mouse.click(*cell_centre(stage, 3, 5))
        expect(stage.get_by_text("clicks: " + str([*before, *[(3, 5)] * count]), exact=True)).to_be_visible()
        wait_for_idle(stage)
    bar = plot(stage, "Likeliest tokens.").locator(".bars .point").nth(2)
    bar.scroll_into_view_if_needed()
    wait_for_rest(stage)
    box = bar.bounding_box()
    stage.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(stage.get_by_text("picked: 102")).to_be_visible()
    chart = plot(stage, "A causal map.")
    chart.scroll_into_view_if_needed()
    wait_for_rest(stage)
    box = chart.locator(".nsewdrag").bounding_box()
    stage.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.2)
    expect(chart.locator(".hoverlayer")).to_contain_text("too late")
    assert "weight" not in chart.locator(".hoverlayer").text_content()


def test_a_click_is_told_whenever_the_button_is_let_go(app, new_page):
    """Plotly looks at what is pointed at once in 50 ms, and finds nothing while a button is down."""
    page = new_page(locale="en-US")  # with a clock of its own
    open_page(page, f"{app.url}/step")
    expect(page.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    clicks = []
    for after in (0, 49):
        x, y = cell_centre(page, 3, 5)
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)
        page.mouse.move(x - 2, y)
        page.mouse.move(x, y)  # it looks in 50 ms again
        page.mouse.down()
        page.clock.run_for(50 + after)
        page.mouse.up()
        page.clock.resume()
        clicks.append((3, 5))
        expect(page.get_by_text(f"clicks: {clicks}", exact=True)).to_be_visible()
        page.mouse.move(0, 0)
        wait_for_idle(page)


def charts_follow_theme_and_width_and_wait_for_a_place(stage):
    """While a page is laid out a chart's place may be 16 pixels wide, where Plotly places titles at infinity."""
    said = []
    stage.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    chart, drawn = stage.locator(CELLS), stage.locator(f"{CELLS} .main-svg").first
    title = plot(stage, "An attention map.").locator(".gtitle")
    light, before = title.evaluate("node => getComputedStyle(node).fill"), chart.bounding_box()["width"]
    chart.evaluate("root => { root.style.width = '16px'; }")
    wait_for_rest(stage)
    chart.evaluate("root => { root.style.width = ''; }")
    wait_for_rest(stage)
    comes_to(stage, lambda: abs(drawn.bounding_box()["width"] - before) <= 2, expected=True)
    assert said == []
    stage.evaluate("window.keptPlot = document.querySelector(\"[aria-label='Likeliest tokens.']\")")
    stage.emulate_media(color_scheme="dark")
    expect(stage.locator(".gf-stepper")).to_have_attribute("data-theme", "dark")
    comes_to(stage, lambda: title.evaluate("node => getComputedStyle(node).fill") != light, expected=True)
    chosen = plot(stage, "Likeliest tokens.").locator(".bars .point path").nth(1)
    expect(chosen).to_have_css("fill", "rgb(240, 163, 94)")
    assert stage.evaluate("window.keptPlot.isConnected")
    stage.set_viewport_size({"width": 820, "height": 720})
    comes_to(stage, lambda: chart.bounding_box()["width"] < before, expected=True)
    comes_to(stage, lambda: abs(drawn.bounding_box()["width"] - chart.bounding_box()["width"]) <= 2, expected=True)
    stage.set_viewport_size(VIEWPORT)
    wait_for_idle(stage)
    nothing_is_taken_for_markup(stage)


def nothing_is_taken_for_markup(stage):
    choose_run(stage, "hostile")
    comes_to(stage, lambda: frames(stage), [[-0.5, 0.5]])
    chart = plot(stage, "An attention map.")
    expect(chart.locator(".gtitle")).to_have_text("A map of <b>tokens</b>")
    expect(chart.locator(".ytick text").first).to_contain_text(HOSTILE[0])
    rows = chart.locator(".ytick text").all_text_contents()
    assert [re.sub("[\u2068\u2069]", "", row) for row in rows[:11]] == [*HOSTILE[:10], "%{customdata[…"]
    for place, piece in enumerate(HOSTILE[:12]):
        stage.mouse.move(*cell_centre(stage, place, 4))
        expect(chart.locator(".hoverlayer")).to_contain_text(f"Query {place + 1}: {piece}")
    assert stage.locator(".gf-chart :is(a[href*=example], img)").count() == 0
    chips = stage.locator(".gf-source .gf-piece").all_text_contents()
    assert chips[:4] == ["<s>", "</s>", "<br>", "<b>x</b>"]
    assert stage.locator(".gf-stepper :is(a, img, s, br)").count() == 0


def test_its_script_is_loaded_once_and_while_or_where_it_does_not_come_a_chart_says_so(app, new_page):
    page = new_page()
    loads, held = [], []
    page.on("request", lambda request: loads.append(request.url) if "plotly" in request.url else None)
    page.route("**/plotly-*.js", lambda route: held.append(route))
    page.goto(f"{app.url}/step/", wait_until="commit")  # all of it does not come yet
    expect(page.locator(CELLS)).to_have_attribute("data-waits", "Loading the chart…")
    for route in held:
        route.continue_()
    expect(page.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    expect(page.locator(CELLS)).not_to_have_attribute("data-waits", "Loading the chart…")
    page.keyboard.press("ArrowRight")
    wait_for_idle(page)
    assert loads.count(f"{app.url}/app/static/{PLOTLY_FILE}") == 1
    assert not [url for url in loads if "/static/js/" in url]  # Streamlit's own copy of Plotly stays away
    page.unroute("**/plotly-*.js")
    page.route("**/plotly-*.js", lambda route: route.fulfill(status=404, body=""))
    open_page(page, f"{app.url}/step")
    expect(page.get_by_text("The chart could not be drawn because its script did not load").first).to_be_visible()
    page.unroute("**/plotly-*.js")
