"""The components in a real browser: what no test without one can show."""

import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import open_page, wait_for_idle
from tools.serve import ROOT, serve
from ui.components.assets import PLOTLY_FILE, ensure_static

APP = Path(__file__).parent / "component_app.py"
SETTLED_MS = 600
FIRST_CHART_MS = 30_000  # Plotly's script is 4.8 MB, and the machine may be busy
CELLS = ".gf-chart:has([aria-label='An attention map.'])"
HOSTILE = (
    "<s>", "</s>", "<br>", "<b>x</b>", "&lt;", "&amp;", "$x^2$", "_a_", "`b`", "%{x}", "%{customdata[0]}",
    "<a href='https://example.org'>go</a>",
)  # fmt: skip
CONTRAST = """
([front, back]) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  const light = colours => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const linear = Array.from(canvas.getImageData(0, 0, 1, 1).data.slice(0, 3), value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const [one, two] = [light([...back, front]), light(back)];
  return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
}
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("components")
    shutil.copy(APP, folder / "app.py")
    ensure_static(folder / "static")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with serve(folder / "app.py", log=folder / "app.log", environment={"PYTHONPATH": path}) as running:
        yield running


@pytest.fixture
def stage(app, page):
    open_page(page, f"{app.url}/step")
    expect(page.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    return page


def choose_run(page: Page, name: str) -> None:
    page.locator("[data-testid=stSidebar]").get_by_text(name, exact=True).click()
    expect(page.get_by_text(re.compile(f"python: {name} step"))).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    wait_for_idle(page)


def switch(page: Page, label: str) -> None:
    page.locator("[data-testid=stSidebar] label").filter(has_text=label).last.click()
    wait_for_idle(page)


def browser_step(page: Page) -> int:
    return int(page.locator(".gf-stepper").get_attribute("data-step"))


def expect_step(page: Page, step: int) -> None:
    """Wait for a step: what Python sends reaches the script a moment after the text beside it."""
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", str(step))


def runs(page: Page) -> int:
    return int(page.get_by_text(re.compile(r"^runs: \d+$")).inner_text().split()[1])


def plot(page: Page, alt: str) -> Locator:
    return page.get_by_role("img", name=alt)


def cell_centre(page: Page, row: int, column: int) -> tuple[float, float]:
    """Where a cell of the first map is on the screen."""
    plot(page, "An attention map.").scroll_into_view_if_needed()
    return tuple(page.evaluate(
        """([row, column]) => {
          const chart = document.querySelector("[aria-label='An attention map.']");
          const { xaxis, yaxis } = chart._fullLayout;
          const box = chart.getBoundingClientRect();
          return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
        }""",
        [row, column],
    ))  # fmt: skip


# ------------------------------------------------------------------------------------------------ stepper


def test_twenty_quick_presses_are_twenty_steps_and_one_report(stage):
    before = runs(stage)
    for _ in range(20):
        stage.keyboard.press("ArrowRight")
        stage.wait_for_timeout(30)
    expect_step(stage, 20)
    expect(stage.get_by_text("python: plain step 20")).to_be_visible()
    wait_for_idle(stage)
    assert runs(stage) - before <= 2  # a machine under load may be slower than the pause that counts as rest


def test_output_and_shading_move_at_once(stage):
    stage.keyboard.press("ArrowRight")
    assert stage.locator(".gf-text").inner_text() == "w0 w1"
    assert stage.locator(".gf-new").inner_text().strip() == "w1"
    weights = stage.locator(".gf-source .gf-chip").evaluate_all(
        "chips => chips.map(chip => Number(chip.style.getPropertyValue('--weight')))"
    )
    assert weights == [float(place == 1) for place in range(24)]
    assert (
        "Step 2 of 24: reads ‘▁w0’, predicts ‘▁w1’ (p = 0.83)"
        in stage.locator(".gf-stepper .gf-caption").inner_text()
    )


def test_first_back_next_last_and_slider(stage):
    stage.get_by_label("Last step").click()
    expect_step(stage, 23)
    assert "It ended." in stage.locator(".gf-stepper .gf-caption").inner_text()
    stage.get_by_label("Back one step").click()
    expect_step(stage, 22)
    stage.get_by_label("First step").click()
    expect_step(stage, 0)
    stage.get_by_label("Next step").click()
    stage.locator(".gf-slider").press("ArrowRight")
    expect_step(stage, 2)
    stage.locator(".gf-target .gf-chip").nth(8).click()  # the first chip is the start piece
    expect_step(stage, 7)


def test_home_end_and_space(stage):
    stage.keyboard.press("End")
    expect_step(stage, 23)
    stage.keyboard.press("Home")
    expect_step(stage, 0)
    stage.locator(".gf-speed").select_option("4")
    stage.locator(".gf-stepper").focus()
    stage.keyboard.press("Space")
    stage.wait_for_timeout(1200)
    stage.keyboard.press("Space")
    halted = browser_step(stage)
    assert 2 <= halted <= 6
    stage.wait_for_timeout(600)
    assert browser_step(stage) == halted


def test_play_runs_to_the_end_and_stops(stage):
    choose_run(stage, "other")
    stage.locator(".gf-speed").select_option("4")
    stage.get_by_label("Play", exact=True).click()
    expect(stage.get_by_label("Pause")).to_be_visible()
    expect(stage.get_by_label("Play", exact=True)).to_be_visible(timeout=5000)
    expect_step(stage, 3)


def test_keys_are_left_alone_while_typing(stage):
    stage.get_by_label("typing").click()
    stage.keyboard.press("ArrowRight")
    stage.keyboard.press("End")
    expect_step(stage, 0)


def test_keys_are_left_alone_under_a_dialog(stage):
    stage.get_by_role("button", name="open dialog").click()
    expect(stage.get_by_text("inside")).to_be_visible()
    stage.keyboard.press("ArrowRight")
    expect_step(stage, 0)


def test_a_rerun_in_flight_never_jumps_back(stage):
    switch(stage, "slow")
    stage.evaluate("document.activeElement.blur()")
    seen = []
    for press in range(24):
        if press < 12:
            stage.keyboard.press("ArrowRight")
        stage.wait_for_timeout(250)
        seen.append(browser_step(stage))
    assert seen == sorted(seen)
    expect(stage.get_by_text("python: plain step 12")).to_be_visible()


def test_a_new_revision_moves_the_reader(stage):
    stage.keyboard.press("End")
    expect(stage.get_by_text("python: plain step 23")).to_be_visible()
    stage.get_by_role("button", name="jump to step 2").click()
    expect(stage.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    expect_step(stage, 1)


def test_another_run_starts_where_python_says(stage):
    stage.keyboard.press("End")
    expect(stage.get_by_text("python: plain step 23")).to_be_visible()
    choose_run(stage, "other")
    expect_step(stage, 0)
    assert stage.locator(".gf-text").inner_text() == "one"


def test_guess_mode_gives_nothing_away(stage):
    switch(stage, "guess")
    stage.evaluate("document.activeElement.blur()")
    for step in (3, 4):
        while browser_step(stage) < step:
            stage.keyboard.press("ArrowRight")
        shown = (
            stage.locator(".gf-stepper .gf-target").inner_html()
            + stage.locator(".gf-stepper .gf-caption").inner_html()
        )
        assert f"w{step}" not in shown
        assert f"w{step - 1}" in shown
        assert "0.83" not in stage.locator(".gf-now").inner_html()
        assert stage.locator(".gf-text").inner_text().endswith("?")
    switch(stage, "guess")
    assert "w4" in stage.locator(".gf-now").inner_text()


def test_a_rerun_keeps_focus_and_nodes(stage):
    stage.get_by_label("Next step").focus()
    stage.evaluate("window.keptPlot = document.querySelector(\"[aria-label='An attention map.']\")")
    stage.keyboard.press("Enter")
    expect(stage.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    wait_for_idle(stage)
    assert stage.evaluate(
        "document.activeElement.shadowRoot.activeElement.getAttribute('aria-label')"
    ) == "Next step"  # fmt: skip
    assert stage.evaluate("window.keptPlot.isConnected")


def test_leaving_takes_the_keys_away_and_coming_back_works(stage):
    stage.get_by_role("link", name="Elsewhere").click()
    expect(stage.get_by_role("heading", name="Elsewhere")).to_be_visible()
    stage.wait_for_timeout(SETTLED_MS)
    assert stage.locator(".gf-stepper").count() == 0
    stage.keyboard.press("ArrowRight")
    stage.get_by_role("link", name="Step").click()
    expect(stage.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    wait_for_idle(stage)
    stage.evaluate("document.activeElement.blur()")
    stage.keyboard.press("ArrowRight")
    expect_step(stage, 1)


def test_a_run_without_output_says_so(stage):
    choose_run(stage, "nothing")
    assert "Nothing was produced." in stage.locator(".gf-stepper .gf-caption").inner_text()
    stage.keyboard.press("ArrowRight")
    expect(stage.get_by_text("Nothing to draw yet.")).to_be_visible()


def test_a_phone_shows_all_of_it(app, new_page):
    phone = new_page(viewport={"width": 390, "height": 844}, has_touch=True)
    open_page(phone, f"{app.url}/step")
    expect(phone.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    main = "document.querySelector('[data-testid=\"stMain\"]')"
    assert phone.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    for box in (each.bounding_box() for each in phone.locator(".gf-button, .gf-speed, .gf-slider").all()):
        assert box["width"] >= 40
        assert box["height"] >= 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(app, new_page, scheme):
    page = new_page(color_scheme=scheme)
    open_page(page, f"{app.url}/step")
    page.keyboard.press("ArrowRight")
    wait_for_idle(page)
    background = page.evaluate("getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor")
    chosen = page.locator(".gf-source .gf-chip").nth(1)  # weight 1: the strongest shade
    for place in (
        ".gf-heading",
        ".gf-note",
        ".gf-caption",
        ".gf-new",
        ".gf-id",
        ".gf-probability",
        ".gf-now .gf-piece",
    ):
        for each in page.locator(f".gf-stepper {place}").all():
            colour = each.evaluate("node => getComputedStyle(node).color")
            assert page.evaluate(CONTRAST, [colour, [background]]) >= 4.5, place
    shade = chosen.evaluate("node => getComputedStyle(node).backgroundColor")
    colour = chosen.locator(".gf-piece").evaluate("node => getComputedStyle(node).color")
    assert page.evaluate(CONTRAST, [colour, [background, shade]]) >= 4.5


# ------------------------------------------------------------------------------------------------ charts


def test_zoom_is_kept_while_stepping(stage):
    left, top = cell_centre(stage, 2, 2)
    right, bottom = cell_centre(stage, 8, 8)
    stage.mouse.move(left, top)
    stage.mouse.down()
    stage.mouse.move(right, bottom, steps=5)
    stage.mouse.up()
    ranges = "document.querySelector(\"[aria-label='An attention map.']\")._fullLayout.xaxis.range.map(Math.round)"
    zoomed = stage.evaluate(ranges)
    assert zoomed[0] >= 1
    assert zoomed[1] <= 9
    stage.evaluate("document.activeElement.blur()")
    stage.keyboard.press("ArrowRight")
    expect(stage.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    wait_for_idle(stage)
    assert stage.evaluate(ranges) == zoomed


def test_a_cell_clicked_twice_is_reported_twice(stage):
    for count in (1, 2):
        stage.mouse.click(*cell_centre(stage, 3, 5))
        expect(stage.get_by_text("clicks: " + str([(3, 5)] * count))).to_be_visible()
        wait_for_idle(stage)


def test_a_bar_gives_its_token_id(stage):
    bar = plot(stage, "Likeliest pieces.").locator(".bars .point").nth(2)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    stage.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(stage.get_by_text("picked: 102")).to_be_visible()


def test_masked_cells_say_why(stage):
    chart = plot(stage, "A causal map.")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").bounding_box()
    stage.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.2)
    expect(chart.locator(".hoverlayer")).to_contain_text("too late")
    assert "weight" not in chart.locator(".hoverlayer").text_content()


def test_nothing_is_taken_for_markup(stage):
    choose_run(stage, "hostile")
    chart = plot(stage, "An attention map.")
    expect(chart.locator(".gtitle")).to_have_text("A map of <b>pieces</b>")
    rows = chart.locator(".ytick text").all_text_contents()
    assert [re.sub("[\u2068\u2069]", "", row) for row in rows[:11]] == [*HOSTILE[:10], "%{customdata[…"]
    for place, piece in enumerate(HOSTILE[:12]):
        stage.mouse.move(*cell_centre(stage, place, 4))
        expect(chart.locator(".hoverlayer")).to_contain_text(f"Query {place + 1}: {piece}")
    assert stage.locator(".gf-chart :is(a[href*=example], img)").count() == 0
    chips = stage.locator(".gf-source .gf-piece").all_text_contents()
    assert chips[:4] == ["<s>", "</s>", "<br>", "<b>x</b>"]
    assert stage.locator(".gf-stepper :is(a, img, s, br)").count() == 0


def test_charts_follow_the_theme_while_shown(stage):
    title = plot(stage, "An attention map.").locator(".gtitle")
    light = title.evaluate("node => getComputedStyle(node).fill")
    stage.evaluate("window.keptPlot = document.querySelector(\"[aria-label='Likeliest pieces.']\")")
    stage.emulate_media(color_scheme="dark")
    expect(stage.locator(".gf-stepper")).to_have_attribute("data-theme", "dark")
    wait_for_idle(stage)
    assert title.evaluate("node => getComputedStyle(node).fill") != light
    chosen = plot(stage, "Likeliest pieces.").locator(".bars .point path").nth(1)
    expect(chosen).to_have_css("fill", "rgb(240, 163, 94)")
    assert stage.evaluate("window.keptPlot.isConnected")


def test_plotly_is_loaded_once_and_on_deep_links(app, new_page):
    for path in ("/step", "/step/"):
        page = new_page()
        loads = []
        page.on(
            "request",
            lambda request, loads=loads: loads.append(request.url) if "plotly" in request.url else None,
        )
        open_page(page, app.url + path)
        expect(page.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
        page.keyboard.press("ArrowRight")
        wait_for_idle(page)
        assert len([url for url in loads if url == f"{app.url}/app/static/{PLOTLY_FILE}"]) == 1
        assert not [url for url in loads if "/static/js/" in url]  # Streamlit's own copy of Plotly stays away


def test_a_chart_without_its_script_says_so(app, new_page):
    page = new_page()
    page.route("**/plotly-*.js", lambda route: route.fulfill(status=404, body=""))
    open_page(page, f"{app.url}/step")
    expect(page.get_by_text("The chart could not be drawn because its script did not load").first).to_be_visible()


def test_downloads_are_made_in_the_browser(stage):
    chart = plot(stage, "Entropy.")
    chart.scroll_into_view_if_needed()
    chart.hover()
    titles = [button.get_attribute("data-title") for button in chart.locator(".modebar-btn").all()]
    assert titles == ["Reset axes", "Download as SVG", "Download as PNG"]
    for format_ in ("SVG", "PNG"):
        with stage.expect_download() as download:
            chart.locator(f".modebar-btn[data-title='Download as {format_}']").click()
        assert download.value.suggested_filename == f"curve.{format_.lower()}"


def test_charts_take_the_width_there_is(stage):
    stage.set_viewport_size({"width": 820, "height": 720})
    stage.wait_for_timeout(SETTLED_MS)
    chart = stage.locator(CELLS)
    drawn = chart.locator(".main-svg").first.bounding_box()["width"]
    assert abs(drawn - chart.bounding_box()["width"]) <= 2
