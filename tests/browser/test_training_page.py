"""A training is walked through by slider, mark, tile and row; each rest is one entry of the history."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, click_chart, comes_to, hover, turn_to, wait_for_idle
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import SETTLED_MS, charts_are_drawn, expect_address, source_box
from tests.transformer.grown import STEPS, write_grown
from tools.serve import serve

LOSSES, STRIP = "training_losses", ".st-key-over_training"
SIDE, IN_PAGE = ".st-key-training_time .gf-moments", ".st-key-training_time_page .gf-moments"
HERE = "?model=grown%40219&src=abcdef&step=3&layer=2&head=1"
HEAD = "?model=grown&src=abcdef&panel=training&kind=cross&layer=2&head=1&step=2"
MARK = """(chart, step) => {
  const line = chart.data.findIndex((trace) => trace.customdata), at = chart.data[line].customdata.indexOf(step);
  return [chart.calcdata[line][at].x, chart.calcdata[line][at].y]; }"""
TILE = """(chart, tile) => {
  const { x0, x1, y0, y1 } = chart.layout.shapes[tile];
  return [(x0 + x1) / 2, (y0 + y1) / 2]; }"""
FRAMED = """chart => {
  const widths = chart.layout.shapes.map((one) => one.line.width);
  return Math.max(...widths) > 1 ? widths.indexOf(Math.max(...widths)) : -1; }"""

# What the slider says from now on: while it plays, a look from outside would miss some.
NOTE_MOMENTS = """name => {
  window.moments = [];
  const note = () => { if (moments.at(-1) !== name.innerText) moments.push(name.innerText); };
  new MutationObserver(note).observe(name, { childList: true, characterData: true, subtree: true }); }"""


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A server of a folder with a checkpoint and five snapshots of it."""
    folder = write_grown(tmp_path_factory.mktemp("grown"))
    with serve(log=folder / "app.log", arguments=["--checkpoints", str(folder)]) as running:
        yield running


def plot(page, key):
    return page.locator(f".st-key-{key} .js-plotly-plot")


def entries(page):
    return page.evaluate("history.length")


def stands_at(page, step):
    """The slider, the address and the run are those of a snapshot, and all else is as it was."""
    expect_address(page, model="grown" if step is None else f"grown@{step}", src="abcdef", layer="2", head="1")
    name = "The checkpoint itself" if step is None else f"Step {step:,}"
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text(name)
    wait_for_idle(page)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value("Grown letters (grown)")
    expect(source_box(page)).to_have_value("abcdef")


def test_keys_and_play_move_through_it_and_each_rest_is_one_entry(grown, new_page):
    page = new_page()
    turn_to(page, f"{grown.url}/attention{HERE}&panel=head")
    charts_are_drawn(page)
    box, menu, name = (page.locator(part).bounding_box() for part in (SIDE, ".st-key-menu", ".st-key-model"))
    assert name["y"] + name["height"] <= box["y"] + 2 < box["y"] + box["height"] <= menu["y"] + 2
    assert menu["y"] + menu["height"] < 720
    slider, before = page.locator(f"{SIDE} .gf-slider"), entries(page)
    assert slider.get_attribute("max") == str(len(STEPS))
    for n, (key, step) in enumerate([("ArrowRight", 1200), ("Home", 0)]):
        slider.press(key)
        stands_at(page, step)
        comes_to(page, lambda n=n: entries(page), before + n + 1)
    assert page.locator(".gf-stepper").get_attribute("data-step") == "2"
    page.go_back()
    stands_at(page, 1200)
    page.go_forward()
    stands_at(page, 0)
    expect_address(page, step="3")

    before = entries(page)
    page.locator(f"{SIDE} .gf-moment").evaluate(NOTE_MOMENTS)
    page.locator(f"{SIDE} .gf-play").click()
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text("itself")
    seen = [re.sub(r"\D*([\d,]+).*", r"\1", name) for name in page.evaluate("moments")]
    assert seen[:-1] == ["10", "219", "1,200", "2,208"]
    stands_at(page, None)
    assert entries(page) == before + 1  # for all that was played
    page.go_back()
    stands_at(page, 0)

    page.set_viewport_size(PHONE)
    slider = page.locator(f"{IN_PAGE} .gf-slider")
    expect(slider).to_be_visible()
    comes_to(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], expected=True)
    for place in (slider, *page.locator(f"{IN_PAGE} .gf-button").all()):
        box = place.bounding_box()
        assert 0 <= box["x"] <= PHONE["width"] - box["width"]
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(slider).to_be_hidden()
    page.locator("h1").click()
    page.keyboard.press("p")
    expect(slider).to_be_visible()
    slider.press("End")
    expect_address(page, model="grown")


def test_marks_tiles_rows_and_cells_open_their_snapshots(grown, new_page):
    page = new_page()
    turn_to(page, f"{grown.url}/training?model=grown&src=abcdef&step=3")
    charts_are_drawn(page)
    click_chart(page, LOSSES, *plot(page, LOSSES).evaluate(MARK, 219))
    expect_address(page, model="grown@219", src="abcdef", step="3")
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text("Step 219")
    click_chart(page, LOSSES, *plot(page, LOSSES).evaluate(MARK, 1200))
    expect_address(page, model="grown@1200", src="abcdef", step="3")
    page.go_back()
    expect_address(page, model="grown@219", src="abcdef", step="3")

    turn_to(page, f"{grown.url}/attention{HEAD}")
    charts_are_drawn(page)
    expect(page.locator(f"{STRIP} .annotation")).to_have_count(len(STEPS))
    strip = plot(page, "over_training")
    assert strip.evaluate(FRAMED) == -1
    said = hover(page, "over_training", *strip.evaluate(TILE, 4))
    assert "Step 2,208" in said
    assert "Source token (key) 4: d" in said
    click_chart(page, "over_training", *strip.evaluate(TILE, 2))
    expect_address(page, model="grown@219", panel="training", layer="2", head="1", step="2")
    comes_to(page, lambda: strip.evaluate(FRAMED), 2)

    turn_to(page, f"{grown.url}/training?model=grown&src=abcdef&training=sentence")
    charts_are_drawn(page)
    table = page.locator(".gf-grown tbody tr")
    expect(table).to_have_count(len(STEPS))
    table.nth(1).get_by_role("link").click()
    expect_address(page, model="grown@10", src="abcdef", training="sentence")
    expect(page.locator(".gf-grown tr[aria-current]")).to_contain_text("10")
    charts_are_drawn(page)
    click_chart(page, "training_entropy", 3, 5)
    expect_address(page, model="grown@1200", layer="2", head="2", training="sentence")


def test_a_card_of_markup_has_its_command_letter_by_letter(own_server, page):
    turn_to(page, f"{own_server.url}/training?model={NAME}")
    main = page.get_by_test_id("stMain")
    expect(main).to_contain_text(f"train {IMAGE}", timeout=SETTLED_MS)
    assert main.locator("pre img, pre script").count() == 0
