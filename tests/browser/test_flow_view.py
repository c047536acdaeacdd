"""The flow view draws the lines that numpy counts, keeps what one chose, and shows pieces letter by letter."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.flow import choose, drawn, expect_view, expected, painted_pixels, save, token
from tests.browser.flow_app import HOSTILE, example
from tests.browser.helpers import PHONE, chart_menu, comes_to, open_page, wait_for_idle


@pytest.fixture
def stage(app, page):
    """The flow view on the example "cross"."""
    page.set_viewport_size({"width": 1280, "height": 900})
    open_page(page, f"{app.url}/flow")
    expect_view(page, pinned="", focus="", heads="1 2 3 4", lines=len(expected("cross")))
    return page


def lines_are_those_of_the_weights_and_pointing_asks_no_server(stage):
    lines = expected("cross")
    weights, _ = example("cross")
    assert drawn(stage) == lines.keys()
    share = sum(lines.values()) / weights.sum()
    said = f"{len(lines)} of {weights.size} lines are drawn; they carry {share:.0%} of the total weight."
    expect(stage.locator(".gf-flow-count")).to_contain_text(said)
    assert painted_pixels(stage) > 1000
    runs = stage.get_by_text(re.compile(r"^runs: \d+$")).inner_text()
    stage.evaluate(COUNT_SENT)
    token(stage, "key", 3).hover()
    expect_view(stage, focus="key 3", lines=len(expected("cross", key=3)))
    token(stage, "query", 1).hover()
    expect_view(stage, focus="query 1", lines=len(expected("cross", query=1)))
    head, best = np.unravel_index(weights[:, 1].argmax(), weights[:, 1].shape)
    readout = re.sub(r"\s+", " ", stage.locator(".gf-flow-readout").inner_text())
    assert f"head {head + 1} ▁k{best + 1} {weights[head, 1, best]:.3f}" in readout
    stage.mouse.move(5, 5)
    expect_view(stage, focus="", lines=len(lines))
    assert stage.evaluate("window.sent") == 0
    assert stage.get_by_text(re.compile(r"^runs: \d+$")).inner_text() == runs
    stage.get_by_label("Hide lines below this weight").fill("0.3")
    assert drawn(stage) == expected("cross", threshold=0.3).keys()
    token(stage, "query", 2).click()
    comes_to(stage, lambda: stage.evaluate("window.sent") > 0, expected=True)  # else nothing was counted


def test_lines_are_those_of_what_is_chosen_markup_is_shown_as_it_is_and_all_is_seen_on_a_phone(stage):
    lines_are_those_of_the_weights_and_pointing_asks_no_server(stage)
    token(stage, "query", 2).click()
    stage.get_by_label("Hide lines below this weight").fill("0.05")
    token(stage, "query", 2).click()
    expect(stage.get_by_text("told: query 2")).to_be_visible()
    stage.mouse.move(5, 5)
    expect_view(stage, pinned="query 2", focus="query 2")
    picture = ElementTree.fromstring(save(stage, "SVG").decode())
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == len(expected("cross", query=2))
    assert len(png := save(stage, "PNG")) > 5000
    assert png.startswith(b"\x89PNG")
    token(stage, "query", 2).click()
    expect(stage.get_by_text("told: nothing")).to_be_visible()

    stage.get_by_role("button", name="Head 2", exact=True).click()
    expect_view(stage, heads="1 3 4")
    stage.get_by_role("button", name="Head 3", exact=True).dblclick()
    expect_view(stage, heads="3")
    stage.get_by_role("button", name="Head 1", exact=True).press("Shift+Enter")
    stage.mouse.move(5, 5)
    expect_view(stage, heads="1")
    stage.get_by_role("button", name="None", exact=True).click()
    expect_view(stage, heads="", lines=0)
    comes_to(stage, lambda: painted_pixels(stage), 0)
    stage.get_by_role("button", name="All", exact=True).click()
    masked_cells_markup_and_hundreds_of_pieces_are_told_from_lines(stage)
    it_is_seen_in_the_dark_of_a_phone_and_large(stage)


# Counts what the page sends from now on.
COUNT_SENT = """() => {
  const send = WebSocket.prototype.send;
  window.sent = 0;
  WebSocket.prototype.send = function (data) { window.sent += 1; return send.call(this, data); };
}"""


def step_to(page, step):
    """Do what the stepper does: tell the page at once, and Python later."""
    page.evaluate(
        "step => { document.glassformerStep = step; document.dispatchEvent(new CustomEvent('glassformer-step')); }",
        step,
    )
    if page.get_by_label("step", exact=True).input_value() != str(step):
        page.get_by_label("step", exact=True).fill(str(step))
        page.keyboard.press("Enter")


def test_a_choice_outlives_a_step_and_python_may_make_another(stage):
    step_to(stage, 0)
    token(stage, "query", 3).click()
    stage.get_by_role("button", name="Head 2", exact=True).click()
    stage.get_by_label("Hide lines below this weight").fill("0.1")
    expect(token(stage, "query", 0)).to_have_class(re.compile("gf-flow-now"))
    step_to(stage, 4)
    expect(token(stage, "query", 4)).to_have_class(re.compile("gf-flow-now"))
    stage.mouse.move(5, 5)
    chosen = {"pinned": "query 3", "heads": "1 3 4"}
    expect_view(stage, **chosen, lines=len(expected("cross", heads={0, 2, 3}, query=3, threshold=0.1)))
    choose(stage, "guess")
    expect(stage.locator(".gf-flow-query .gf-flow-token")).to_have_count(5)
    expect_view(stage, **chosen)
    stage.get_by_role("button", name="pin key 3").click()
    expect_view(stage, pinned="key 2")
    stage.get_by_role("button", name="Follow the step").click()
    step_to(stage, 2)
    expect_view(stage, pinned="query 2")
    stage.get_by_role("combobox", name=re.compile("head")).click()
    stage.get_by_role("option", name="2", exact=True).click()
    wait_for_idle(stage)
    expect_view(stage, heads="3")
    stage.get_by_role("combobox", name=re.compile("head")).click()
    stage.get_by_role("option", name="None", exact=True).click()
    wait_for_idle(stage)


def masked_cells_markup_and_hundreds_of_pieces_are_told_from_lines(stage):
    stage.on("dialog", lambda dialog: pytest.fail("a token ran as script"))
    choose(stage, "causal")
    token(stage, "query", 2).hover()
    expect_view(stage, lines=len(expected("causal", query=2)))
    values = [token(stage, "key", key).locator(".gf-flow-value").inner_text() for key in range(7)]
    assert ["masked" in value for value in values] == [False] * 3 + [True] * 4
    choose(stage, "hostile")
    expect(stage.locator(".gf-flow-key .gf-flow-token")).to_have_count(16)
    shown = stage.locator(".gf-flow-key .gf-flow-token").all_inner_texts()
    assert shown == [*HOSTILE[:-1], "⟨U+202E⟩evil"]
    assert stage.locator(".gf-flow :is(img, a, code, script), .gf-flow-token :is(b, i)").count() == 0
    long = token(stage, "key", 13)
    assert long.locator(".gf-flow-piece").evaluate("token => token.scrollWidth > token.clientWidth")
    assert long.get_attribute("title") == HOSTILE[13]
    picture = ElementTree.fromstring(save(stage, "SVG").decode())
    assert set(HOSTILE[:13]) < {node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert not {"img", "a", "b", "script"} & {node.tag.split("}")[1] for node in picture.iter()}
    choose(stage, "huge")
    stage.get_by_label("Hide lines below this weight").fill("0")
    count = stage.locator(".gf-flow-count")
    for said in ("of 2,097,152 lines are drawn", "More than 6,000 lines cannot be distinguished"):
        expect(count).to_contain_text(said)
    assert 0 < int(stage.locator(".gf-flow").get_attribute("data-lines")) <= 6000
    assert stage.locator(".gf-flow-canvas").evaluate("canvas => canvas.height") < 2000
    box = stage.locator(".gf-flow-scroll")
    assert box.evaluate("box => box.scrollHeight > box.clientHeight && box.scrollWidth <= box.clientWidth")


def it_is_seen_in_the_dark_of_a_phone_and_large(page):
    choose(page, "cross")
    page.get_by_label("Hide lines below this weight").fill("0.05")
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    expect_view(page, theme="dark", lines=len(expected("cross")))
    assert page.locator(".gf-flow").evaluate("root => root.scrollWidth <= root.clientWidth")
    first = token(page, "key", 0).bounding_box()
    assert first["x"] + first["width"] <= PHONE["width"]
    page.set_viewport_size({"width": 1280, "height": 900})
    wait_for_idle(page)
    box = page.locator(".gf-flow-canvas").bounding_box
    small = box()
    chart_menu(page, "Show this chart large")
    expect(page.locator("dialog.gf-flow-dialog")).to_be_visible()
    comes_to(page, lambda: all(box()[side] > small[side] for side in ("width", "height")), expected=True)
    page.get_by_role("button", name="Close").click()
    comes_to(page, box, small)
