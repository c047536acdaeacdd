"""The first screen has the whole output and a chart, a block swaps the picture in place, and nothing jumps."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import comes_to, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import (
    FIFTEEN,
    browser_step,
    chart_is_on_the_first_screen,
    expect_address,
    output,
    type_source,
    wait_for_charts,
)

LONG = quote("我不知道她为什么昨天晚上没有来参加我们的会议。" * 3)  # 30 and more
PLAYER = ".gf-stepper .gf-controls"

# The pieces of a list that are seen in part: neither whole in its frame nor whole outside. Of one row that slides, as
# on a telephone, only the piece of the step has to be whole.
CUT = """lists => lists.flatMap(list => {
  const frame = list.getBoundingClientRect();
  const slides = getComputedStyle(list).flexWrap === "nowrap";
  return [...list.children].filter(chip => !slides || chip.matches(".gf-now")).filter(chip => {
    const { top, bottom, left, right } = chip.getBoundingClientRect();
    const inside = top >= frame.top - 1 && bottom <= frame.bottom + 1
      && left >= frame.left - 1 && right <= frame.right + 1;
    return !inside && bottom > frame.top + 1 && top < frame.bottom - 1;
  }).map(chip => chip.textContent);
})"""


def row_ends(page: Page, key: str) -> list[float]:
    """Where the rows of a chart end, from the top."""
    rows = page.locator(f".st-key-{key} .ytick text")
    return sorted(rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().bottom)"))


def player_is_seen(page: Page) -> bool:
    box, size = page.locator(PLAYER).bounding_box(), page.viewport_size
    return bool(box and size and box["y"] >= 0 and box["y"] + box["height"] <= size["height"])


# Goes through all steps from the first one, in the page: what is cut at any, and all places that the two lists had.
WALK = f"""async stepper => {{
  const cut = {CUT}, seen = new Set(), found = [];
  const press = key => stepper.dispatchEvent(new KeyboardEvent("keydown", {{ key, bubbles: true, composed: true }}));
  press("Home");
  for (let step = -1; step !== stepper.dataset.step; press("ArrowRight")) {{
    step = stepper.dataset.step;
    await new Promise(requestAnimationFrame);
    found.push(...cut([...stepper.querySelectorAll(".gf-pieces")]));
    const boxes = [".gf-source", ".gf-target"].map(side => stepper.querySelector(side).getBoundingClientRect());
    seen.add(boxes.map(box => [Math.round(box.top), Math.round(box.height)].join("+")).join(" "));
  }}
  return {{ last: Number(stepper.dataset.step), places: [...seen], cut: found }};
}}"""


WIDTHS = (1280, 1024, 850, 390)


@pytest.mark.parametrize(
    ("source", "least_steps", "widths"),
    [
        (LONG, 15, (850, 390)),
        pytest.param(FIFTEEN, 13, WIDTHS, marks=pytest.mark.deep),
        pytest.param(LONG, 15, WIDTHS, marks=pytest.mark.deep),
    ],
)
def test_no_piece_is_cut_and_nothing_jumps_while_a_sentence_grows(server, page, source, least_steps, widths):
    turn_to(page, f"{server.url}/step?model=zh-en&src={source}")
    for width in widths:
        page.set_viewport_size({"width": width, "height": 720})
        wait_for_idle(page)
        wait_for_rest(page)
        assert page.locator(".gf-slider").bounding_box()["width"] >= 90
        page.locator(".gf-stepper").focus()
        walk = page.locator(".gf-stepper").evaluate(WALK)
        assert walk["last"] >= least_steps
        assert (len(walk["places"]), walk["cut"]) == (1, []), width
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


TEXT = ".gf-text"
STRIP = ".st-key-model_strip"


def test_the_whole_output_is_there_at_once_and_a_block_swaps_the_picture_in_place(server, page):
    page.goto(f"{server.url}/start?model=en-fr&src=I+like+tea.")  # once a page of its own
    expect(page).to_have_url(re.compile(r"/step\?model=en-fr"))
    wait_for_charts(page)
    wait_for_idle(page)
    type_source(page, "We like tea.")
    whole, coming = page.locator(TEXT).text_content(), page.locator(f"{TEXT} .gf-coming")
    assert whole == output(page) + coming.text_content()
    assert len(output(page)) < len(whole) / 2
    expect(coming).to_have_css("opacity", "0.9")
    page.get_by_label("Playing speed").select_option("4")
    page.get_by_label("Play", exact=True).click()
    comes_to(page, lambda: output(page), whole)
    expect(coming).to_have_text("")
    comes_to(page, lambda: page.locator(".st-key-candidates").inner_text().count("</s>") > 0, expected=True)
    wait_for_idle(page)
    expect_address(page, step=str(browser_step(page)))  # where it rests is an entry

    strip, last, entries = page.locator(STRIP), browser_step(page), page.evaluate("history.length")
    strip.scroll_into_view_if_needed()
    place = strip.bounding_box()
    strip.get_by_role("button", name="Causal mask").click()
    expect(page.locator(".st-key-mask_bool .main-svg").first).to_be_visible()
    expect(page.locator(".st-key-cross_map")).to_have_count(0)
    wait_for_idle(page)
    comes_to(page, lambda: strip.bounding_box()["y"], pytest.approx(place["y"], abs=2))
    assert browser_step(page) == last
    comes_to(page, lambda: page.evaluate("history.length"), entries + 1)
    strip.get_by_role("link", name="Causal mask: open the page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
    wait_for_idle(page)
    expect_address(page, src="We like tea.", mask="causal", step=str(last))
    page.go_back()
    expect(page.locator(".st-key-mask_bool .main-svg").first).to_be_visible()
    wait_for_idle(page)
    page.go_back()
    wait_for_idle(page)
    expect(page.locator(".st-key-cross_map .main-svg").first).to_be_visible()


OPTIONS = "log=1&own=1&words=1&hide=1"
ATTENTION = {
    "overview": ".st-key-overview_cross .gf-chart",
    "head": ".st-key-head_map .gf-chart",
    "flow": ".gf-flow-scroll",
    "walk": ".st-key-walk_map .gf-chart",
    "table": ".st-key-head_table_map .gf-chart",
}
OTHER_PAGES = {  # the other parts are looked at where nothing of them may overflow
    "positions?positions=sentence": ".st-key-embedding_strengths .gf-chart",
    "inside?inside=stream": ".st-key-stream_size .gf-chart",
    "inside?inside=lens": ".st-key-lens_table .gf-chart",
    "inside?inside=ffn": ".st-key-ffn_histogram .gf-chart",
}


NOTHING_TO_STEP = {
    "attention?kind=encoder&panel=head&layer=1&head=1": "encoder self-attention, layer 1, head 1",
    "inside?inside=model": None,
}
SHADES = "chips => chips.map(chip => Number(chip.style.getPropertyValue('--weight')))"


def test_charts_are_on_the_first_screen_and_the_player_stays_where_there_is_something_to_step(server, page):
    turn_to(page, f"{server.url}/step?model=zh-en&src={FIFTEEN}&step=5")
    wait_for_charts(page)
    wait_for_rest(page)
    assert row_ends(page, "candidates")[-1] <= 720
    assert row_ends(page, "cross_map")[4] <= 720  # that of the step; longer maps end below
    assert player_is_seen(page)
    page.mouse.move(800, 500)
    page.mouse.wheel(0, 700)
    page.wait_for_function(  # a busy browser scrolls late
        "() => document.querySelector('.st-key-candidates .gf-chart').getBoundingClientRect().bottom < 300"
    )
    wait_for_rest(page)
    assert player_is_seen(page)
    page.get_by_label("Next step").click()
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", "5")
    for panel in ("head", "flow"):
        turn_to(page, f"{server.url}/attention?model=zh-en&src={FIFTEEN}&step=5&layer=2&panel={panel}&{OPTIONS}")
        chart_is_on_the_first_screen(page, ATTENTION[panel])
        assert page.locator(".st-key-controls_bar").bounding_box()["height"] <= 44
    turn_to(page, f"{server.url}/masks?model=zh-en&src={FIFTEEN}&step=5&masks=masks")
    chart_is_on_the_first_screen(page, ".st-key-mask_bool .gf-chart")
    cut = "rows => rows.filter(row => row.scrollWidth > row.clientWidth).map(row => row.innerText)"
    assert page.get_by_test_id("stMain").get_by_role("radiogroup").evaluate_all(cut) == []
    for where, shaded in NOTHING_TO_STEP.items():
        turn_to(page, f"{server.url}/{where}&model=reverse&src=glass")
        expect(page.locator(".gf-target .gf-chip")).to_have_count(7)  # all of the output
        expect(page.locator(PLAYER)).to_be_hidden()
        if shaded:
            expect(page.locator(".gf-note")).to_contain_text(shaded)
        weights = page.locator(".gf-source .gf-chip").evaluate_all(SHADES)
        assert sum(weights) == pytest.approx(1 if shaded else 0, abs=0.02)
    page.set_viewport_size({"width": 850, "height": 720})  # beside an open sidebar nothing is squeezed
    turn_to(page, f"{server.url}/masks?model=zh-en")
    wait_for_charts(page)
    wait_for_rest(page)
    assert min(chart.bounding_box()["width"] for chart in page.locator(".gf-chart").all()) > 400
    turn_to(page, f"{server.url}/glossary")
    expect(page.locator(".gf-glossary-entry dd").first).to_be_visible()
    meanings = page.locator(".gf-glossary-entry dd").evaluate_all("all => all.map(one => one.clientWidth)")
    assert len(meanings) > 100
    assert min(meanings) > 300


@pytest.mark.deep
@pytest.mark.parametrize("where", [*(f"attention?panel={panel}&layer=2" for panel in ATTENTION), *OTHER_PAGES])
def test_the_chart_of_each_part_is_on_the_first_screen(server, page, where):
    turn_to(page, f"{server.url}/{where}&model=zh-en&src={FIFTEEN}&step=5")
    panel = where.partition("panel=")[2].partition("&")[0]
    chart_is_on_the_first_screen(page, OTHER_PAGES.get(where) or ATTENTION[panel])
