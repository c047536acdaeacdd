"""One key sets the app in large type that clips nothing, and a chart as large as the window steps by arrows."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import chart_menu, comes_to, open_page, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import (
    address,
    browser_step,
    expect_address,
    open_step,
    source_box,
    type_source,
    wait_for_charts,
)

FULL = {"width": 1920, "height": 1080}
SMALL = {"width": 1280, "height": 720}
SENTENCE = quote("He goes to school by bus every day with his two small children.")  # 15 pieces
PRESENTED = ":root.gf-present"
TICKS = ".gf-chart :is(.xtick, .ytick) text"
SIZES = """texts => texts.map(text => {  // as large as they are seen: a chart is shown larger as a whole
  const { a, b } = text.getScreenCTM?.() ?? { a: 1, b: 0 };
  return Math.round(parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b));
})"""
# Texts of charts that leave their chart, labels of an axis that run into each other, a page wider than its window.
CLIPPED = """() => {
  const found = [], main = document.querySelector("[data-testid=stMain]");
  if (main.scrollWidth > main.clientWidth + 1) found.push("the page");
  const meet = (a, b, axis) => {
    const [along, across] = [Math.min(a.right, b.right) - Math.max(a.left, b.left),
      Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
    return along > 2 && across > (axis === "x" ? 2 : 0.35 * a.height);
  };
  for (const chart of document.querySelectorAll(".gf-chart")) {
    const frame = chart.getBoundingClientRect();
    for (const text of chart.querySelectorAll(".main-svg text")) {
      const box = text.getBoundingClientRect();
      const out = box.left < frame.left - 2 || box.right > frame.right + 2
        || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
      if (box.width && out) found.push(text.textContent);
    }
    for (const axis of ["x", "y"]) {
      const level = [...chart.querySelectorAll(`.${axis}tick text`)]
        .filter(text => !/rotate\\(-?[1-9]/.test(text.getAttribute("transform")));
      const boxes = level.map(text => text.getBoundingClientRect());
      boxes.slice(1).forEach((box, n) => { if (meet(boxes[n], box, axis)) found.push(level[n].textContent); });
    }
  }
  return found;
}"""

# The part of the window's height that the first picture takes before anybody scrolls.
IN_SIGHT = """() => {
  const { top, bottom } = document.querySelector(".gf-chart").getBoundingClientRect();
  return (Math.min(bottom, innerHeight) - top) / innerHeight;
}"""


def presented(page):
    return page.locator(PRESENTED).count() == 1


def charts_at_rest(page):
    wait_for_idle(page)
    wait_for_charts(page)
    wait_for_rest(page)


@pytest.mark.parametrize(
    "place",
    [
        "/inside?inside=lens&",
        *(pytest.param(place, marks=pytest.mark.deep) for place in ("/step?", "/positions?positions=sentence&")),
    ],
)
def test_one_key_sets_page_and_charts_in_large_type_and_clips_nothing(server, page, place):
    page.set_viewport_size(FULL)
    turn_to(page, f"{server.url}{place}model=en-fr&src={SENTENCE}")
    charts_at_rest(page)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    plain = max(page.locator(TICKS).evaluate_all(SIZES))
    page.keyboard.press("p")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    charts_at_rest(page)
    comes_to(page, lambda: set(page.locator(TICKS).evaluate_all(SIZES)), {24})
    assert page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)") == 24
    assert max(page.locator(".gf-source .gf-piece").evaluate_all(SIZES)) > 20
    comes_to(page, lambda: page.evaluate(CLIPPED), [])
    page.set_viewport_size(SMALL)
    charts_at_rest(page)
    comes_to(page, lambda: max(page.locator(TICKS).evaluate_all(SIZES)) > plain, expected=True)
    comes_to(page, lambda: page.evaluate(CLIPPED), [])
    turn_to(page, f"{server.url}/attention?model=en-fr&src=I+like+coffee.&present=1")
    charts_at_rest(page)
    comes_to(page, lambda: page.evaluate(IN_SIGHT) >= 0.6, expected=True)
    page.go_back()
    charts_at_rest(page)
    page.keyboard.press("P")
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    charts_at_rest(page)
    comes_to(page, lambda: max(page.locator(TICKS).evaluate_all(SIZES)), plain)


def test_it_begins_by_key_or_button_never_while_typing_and_outlives_a_step_a_reload_and_another_page(server, page):
    page.goto("about:blank")  # a visit of its own: a lesson that the tab is in would go on, and stand in the address
    open_step(page, server, "?model=reverse&src=abcdef&lang=qps")
    source_box(page).press_sequentially("pop")
    assert not presented(page)
    assert "pop" in source_box(page).input_value()
    button = page.locator(".gf-present-button").first
    assert button.inner_text() == "P"
    button.click()
    expect(page.locator(PRESENTED)).to_have_count(1)
    expect(source_box(page)).to_be_hidden()
    page.keyboard.press("m")  # the sentence comes with the menu, and leaves once it is typed
    source_box(page).press("Escape")  # belongs to the field
    assert presented(page)
    wait_for_idle(page)
    type_source(page, "abcdef")
    expect(source_box(page)).to_be_hidden()
    wait_for_idle(page)
    page.keyboard.press("ArrowRight")
    here = {"model": "reverse", "src": "abcdef", "step": "2", "lang": "qps", "present": "1"}
    comes_to(page, lambda: address(page) | {"rev": ""}, here | {"rev": ""})
    page.reload()
    charts_at_rest(page)
    comes_to(page, lambda: (presented(page), browser_step(page)), (True, 2))

    open_page(page, f"{server.url}/attention?model=reverse&src=abcdef&step=2&panel=flow&present=1&lang=en")
    sidebar, lines = page.get_by_test_id("stSidebar"), page.locator(".gf-flow-scroll")
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("button", name="Next page")).to_be_visible()
    wait_for_idle(page)
    before = lines.bounding_box()
    page.keyboard.press("m")
    expect(sidebar.get_by_role("link", name="Attention")).to_be_focused()
    assert lines.bounding_box() == before, "the menu moves what it lies over"
    page.keyboard.press("Escape")
    expect(sidebar).to_be_hidden()
    assert presented(page), "the key that closes the menu ends the presentation, too"
    page.get_by_role("button", name="Menu", exact=True).click()
    sidebar.get_by_role("link", name="Translate").click()
    expect(sidebar).to_be_hidden()
    # What a speaker holds goes to the next tab, and at the last part of a page on from it.
    for key, there in (("", "step"), ("PageDown", "search"), ("PageUp", "step"), ("n", "attention")):
        if key:
            page.keyboard.press(key)
        page.wait_for_function("there => location.pathname.endsWith(there)", arg=f"/{there}")
        wait_for_idle(page)
    expect_address(page, panel="flow")
    for key, panel in (("PageUp", "head"), ("PageDown", "flow")):  # parts of the page
        page.keyboard.press(key)
        expect_address(page, panel=panel)
        wait_for_idle(page)
    expect_address(page, present="1", src="abcdef", step="2", panel="flow")
    page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    expect_address(page, present=None)
    expect(page.get_by_role("button", name="Next page")).to_be_hidden()
    a_large_picture_has_large_type_says_the_step_and_steps_by_arrow_keys(server, page)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("sentence", "last"), [("I+like+coffee.&layer=1", "gf-flow-tools"), (SENTENCE, "gf-flow-token")]
)
def test_presented_lines_begin_under_the_controls_and_are_in_sight(server, page, sentence, last):
    page.set_viewport_size(SMALL)
    turn_to(page, f"{server.url}/attention?model=en-fr&src={sentence}&kind=cross&panel=flow&present=1")
    wait_for_idle(page)
    stepper, first, end = (page.locator(f".{name}").first for name in ("st-key-stepper", "gf-flow-token", last))
    ends = lambda locator: sum(locator.bounding_box()[side] for side in ("y", "height"))  # noqa: E731
    comes_to(page, lambda: first.bounding_box()["y"] - ends(stepper) < 150, expected=True)
    comes_to(page, lambda: ends(end) <= 720, expected=True)


# ---------------------------------------------------------------- what is chosen can be read

SPOKEN = {"en": ("en-fr", "My little brother slept in the train."), "zh": ("zh-en", "他每天早上在公园里跑步。")}
# Most boxes in a row, the longest choices of masks, those of mistakes.
SOME = ("matters?layer=2&head=2", "masks?mask=cross", "wrong?mistake=leak")
BOXES = "[data-testid=stMain] [data-testid=stSelectbox] [role=combobox]"
CUT = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.value)"
UNMARKED = """boxes => boxes.filter(box => box.scrollWidth > box.clientWidth
  && getComputedStyle(box).textOverflow !== "ellipsis").map(box => box.value)"""

# What stands in a box until something is typed, where the box is narrower.
TOO_LONG = """boxes => boxes.filter(box => {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = getComputedStyle(box).font;
  return !box.value && pen.measureText(box.placeholder).width > box.clientWidth;
}).map(box => box.placeholder)"""


def address_of(part, language):
    """A part of a page, of the model of a language."""
    model, source = SPOKEN[language]
    return f"{part}&model={model}&src={quote(source)}&lang={language}"


def test_a_class_reads_every_choice_and_what_a_small_window_cuts_says_so(server, new_page):
    page = new_page(viewport=FULL)
    page.goto("about:blank")  # an address says that it is presented where a visit begins
    for part, language in zip(SOME, ("en", "zh", "zh"), strict=True):  # the other pairs: what they share is the box
        every_choice_is_read(page, f"{server.url}/{address_of(part, language)}&present=1")
    turn_to(page, f"{server.url}/inside?inside=ffn&model=en-fr&lang=en&present=1")
    boxes = page.locator("[class*=controls_bar] input[placeholder]")
    expect(boxes.first).to_be_visible()
    comes_to(page, lambda: boxes.evaluate_all(TOO_LONG), [])
    page.set_viewport_size(SMALL)
    turn_to(page, f"{server.url}/{address_of('masks?', 'zh')}&present=")
    expect(page.locator(BOXES).first).to_be_visible()
    comes_to(page, lambda: page.locator(BOXES).evaluate_all(UNMARKED), [])
    comes_to(page, lambda: page.locator(".st-key-controls_bar").bounding_box()["height"] <= 44, expected=True)


def every_choice_is_read(page, url):
    turn_to(page, url)
    expect(page.locator(":root.gf-present")).to_have_count(1)
    expect(page.locator(BOXES).first).to_be_visible()
    comes_to(page, lambda: page.locator(BOXES).evaluate_all(CUT), [])
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), url


# ---------------------------------------------------------------- a chart as large as the window


FOCUSED_IN = """() => {
  let at = document.activeElement;
  while (at.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at.closest("dialog") ? "dialog" : at.textContent;
}"""


def wait_for_focus(page, where):
    """Wait until the focus is in a dialog or on a button, down through our components."""
    page.wait_for_function(f"where => ({FOCUSED_IN})() === where", arg=where)


def a_large_picture_has_large_type_says_the_step_and_steps_by_arrow_keys(server, page):
    open_step(page, server, "?model=reverse&src=abcdef")
    chart_menu(page.locator(".st-key-cross_map"), "Show this chart large")
    large, status = page.locator("dialog[open]"), page.locator("dialog[open] .gf-status")
    expect(status).to_contain_text("Step 1 of 7: reads ‘<s>’, predicts ‘f’")
    page.wait_for_function(f"() => [...document.querySelectorAll('dialog[open] {TICKS}')].length")
    comes_to(page, lambda: max(large.locator(TICKS).evaluate_all(SIZES)), 18)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(status).to_contain_text("Step 3 of 7: reads ‘e’, predicts ‘d’")
    page.wait_for_function(
        "() => document.querySelector('dialog[open] .js-plotly-plot')._fullLayout.shapes[0].y0 === 1.5"
    )
    wait_for_idle(page)
    wait_for_focus(page, "dialog")
    page.keyboard.press("Escape")
    expect(large).to_have_count(0)
    wait_for_focus(page, "⋯")
    charts_at_rest(page)
    comes_to(page, lambda: max(page.locator(TICKS).evaluate_all(SIZES)), 13)
    assert browser_step(page) == 3
