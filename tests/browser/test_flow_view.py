"""The flow view in a real browser: what is drawn is compared with numpy by counts, readout and saved picture."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.flow import THRESHOLD, choose, drawn, expect_view, expected, painted_pixels, save, token
from tests.browser.flow_app import HOSTILE, example
from tests.browser.helpers import chart_menu, comes_to, open_page, turn_to, wait_for_idle


@pytest.fixture
def stage(app, tab):
    """The flow view on the example "cross"; in a tab that has it open, what the test before chose is taken back."""
    tab.set_viewport_size({"width": 1280, "height": 900})
    if tab.url != f"{app.url}/flow":
        turn_to(tab, f"{app.url}/flow")
    else:
        begin_again(tab)
    expect_view(tab, pinned="", focus="", heads="1 2 3 4", lines=len(expected("cross")))
    return tab


def begin_again(page):
    """Take back what there is to choose in the app: data, step, guess, piece and heads."""
    page.keyboard.press("Escape")
    page.mouse.move(5, 5)
    sidebar = page.get_by_test_id("stSidebar")
    if sidebar.get_by_role("switch", name="guess").or_(sidebar.get_by_role("checkbox", name="guess")).is_checked():
        choose(page, "guess")
    if not sidebar.get_by_role("radio", name="cross").is_checked():
        choose(page, "cross")
    step_to(page, 0)
    wait_for_idle(page)
    follow = page.get_by_role("button", name="Follow the step")
    if follow.get_attribute("aria-pressed") == "true":
        follow.click()
    pinned = page.locator(".gf-flow").get_attribute("data-pinned")
    if pinned:
        side, index = pinned.split()
        token(page, side, int(index)).click()
        expect(page.get_by_text("told: nothing")).to_be_visible()
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_label("Hide lines below this weight").fill(str(THRESHOLD))
    page.mouse.move(5, 5)
    wait_for_idle(page)
    page.evaluate("document.activeElement.blur()")


# ---------------------------------------------------------------- lines

# Counts what the page sends from now on.
COUNT_SENT = """() => {
  const send = WebSocket.prototype.send;
  window.sent = 0;
  WebSocket.prototype.send = function (data) { window.sent += 1; return send.call(this, data); };
}"""


def test_all_lines_above_the_threshold_are_drawn(stage):
    lines = expected("cross")
    weights, _ = example("cross")
    assert drawn(stage) == lines.keys()
    share = sum(lines.values()) / weights.sum()
    said = f"{len(lines)} of {weights.size} lines are drawn; they carry {share:.0%} of the total weight."
    expect(stage.locator(".gf-flow-count")).to_contain_text(said)
    assert painted_pixels(stage) > 1000


def test_the_threshold_hides_lines(stage):
    stage.get_by_label("Hide lines below this weight").fill("0.3")
    lines = expected("cross", threshold=0.3)
    expect_view(stage, lines=len(lines))
    assert drawn(stage) == lines.keys()


def test_pointing_at_a_piece_isolates_its_lines_without_the_server(stage):
    everything = len(expected("cross"))
    runs = stage.get_by_text(re.compile(r"^runs: \d+$")).inner_text()
    stage.evaluate(COUNT_SENT)
    for side, index in (("query", 2), ("query", 4), ("key", 3)):
        token(stage, side, index).hover()
        expect_view(stage, focus=f"{side} {index}", lines=len(expected("cross", **{side: index})))
    stage.mouse.move(5, 5)
    expect_view(stage, focus="", lines=everything)
    assert stage.evaluate("window.sent") == 0
    assert stage.get_by_text(re.compile(r"^runs: \d+$")).inner_text() == runs
    token(stage, "query", 2).click()
    comes_to(stage, lambda: stage.evaluate("window.sent") > 0, expected=True)  # else nothing was counted


def test_the_other_side_shows_the_mean_weights(stage):
    weights, _ = example("cross")
    token(stage, "query", 1).hover()
    expect_view(stage, focus="query 1")
    for key, mean in enumerate(weights[:, 1].mean(axis=0)):
        shown = token(stage, "key", key).locator(".gf-flow-value").inner_text()
        assert shown == ("<0.01" if mean < 0.005 else f"{mean:.2f}")
    head, best = np.unravel_index(weights[:, 1].argmax(), weights[:, 1].shape)
    readout = re.sub(r"\s+", " ", stage.locator(".gf-flow-readout").inner_text())
    assert f"head {head + 1} ▁k{best + 1} {weights[head, 1, best]:.3f}" in readout


def test_a_pinned_piece_stays_and_python_hears(stage):
    token(stage, "query", 2).click()
    expect(stage.get_by_text("told: query 2")).to_be_visible()
    stage.mouse.move(5, 5)
    expect_view(stage, pinned="query 2", focus="query 2")
    assert drawn(stage) == expected("cross", query=2).keys()
    token(stage, "key", 4).hover()
    expect(stage.locator(".gf-flow-readout")).to_contain_text("looks at ▁k5")
    weights, _ = example("cross")
    readout = re.sub(r"\s+", " ", stage.locator(".gf-flow-readout").inner_text())
    assert readout.startswith("▁q3 looks at ▁k5")
    for head in range(4):
        assert f"head {head + 1} {weights[head, 2, 4]:.3f}" in readout
    token(stage, "query", 2).click()
    expect_view(stage, pinned="")
    expect(stage.get_by_text("told: nothing")).to_be_visible()


def test_masked_cells_have_no_lines_and_say_so(stage):
    choose(stage, "causal")
    expect_view(stage, lines=len(expected("causal")))
    assert all(query >= key for _, query, key in drawn(stage))
    token(stage, "query", 2).hover()
    expect_view(stage, lines=len(expected("causal", query=2)))
    values = [token(stage, "key", key).locator(".gf-flow-value").inner_text() for key in range(7)]
    assert values[3:] == ["masked"] * 4
    assert "masked" not in values[:3]


# ---------------------------------------------------------------- heads


def test_heads_are_hidden_shown_and_seen_alone(stage):
    stage.get_by_role("button", name="Head 2", exact=True).click()
    expect_view(stage, heads="1 3 4", lines=len(expected("cross", heads={0, 2, 3})))
    stage.get_by_role("button", name="Head 3", exact=True).dblclick()
    expect_view(stage, heads="3", lines=len(expected("cross", heads={2})))
    stage.get_by_role("button", name="Head 1", exact=True).press("Shift+Enter")
    expect_view(stage, heads="1")
    stage.get_by_role("button", name="None", exact=True).click()
    expect_view(stage, heads="", lines=0)
    expect(stage.locator(".gf-flow-readout")).to_contain_text("No head is shown")
    comes_to(stage, lambda: painted_pixels(stage), 0)
    stage.get_by_role("button", name="All", exact=True).click()
    expect_view(stage, heads="1 2 3 4", lines=len(expected("cross")))


def test_a_head_that_python_names_is_shown_alone(stage):
    menu = stage.get_by_role("combobox", name=re.compile("head"))
    menu.click()
    stage.get_by_role("option", name="2", exact=True).click()
    wait_for_idle(stage)
    expect_view(stage, heads="3", lines=len(expected("cross", heads={2})))
    menu.click()
    stage.get_by_role("option", name="None", exact=True).click()
    wait_for_idle(stage)


# ---------------------------------------------------------------- keyboard


def test_the_keyboard_does_all_of_it(stage):
    token(stage, "query", 0).focus()
    stage.keyboard.press("ArrowDown")
    stage.keyboard.press("ArrowDown")
    expect_view(stage, focus="query 2", lines=len(expected("cross", query=2)))
    stage.keyboard.press("Enter")
    expect_view(stage, pinned="query 2")
    stage.keyboard.press("ArrowRight")
    stage.keyboard.press("End")
    expect(stage.locator(".gf-flow-readout")).to_contain_text("▁q3 looks at ▁k9")
    stage.keyboard.press("Escape")
    expect_view(stage, pinned="", focus="key 8")
    stage.keyboard.press("ArrowLeft")
    expect_view(stage, focus="query 5")


# ---------------------------------------------------------------- stepping, and what Python says


def step_to(page, step):
    """Do what the stepper does: tell the page at once, and Python later."""
    page.evaluate(
        "step => { document.glassformerStep = step; document.dispatchEvent(new CustomEvent('glassformer-step')); }",
        step,
    )
    if page.get_by_label("step", exact=True).input_value() != str(step):
        page.get_by_label("step", exact=True).fill(str(step))
        page.keyboard.press("Enter")


def test_what_was_chosen_outlives_a_step(stage):
    step_to(stage, 0)
    token(stage, "query", 3).click()
    stage.get_by_role("button", name="Head 2", exact=True).click()
    stage.get_by_label("Hide lines below this weight").fill("0.1")
    expect(token(stage, "query", 0)).to_have_class(re.compile("gf-flow-now"))
    step_to(stage, 4)
    expect(token(stage, "query", 4)).to_have_class(re.compile("gf-flow-now"))
    expect_view(stage, pinned="query 3", heads="1 3 4")
    stage.mouse.move(5, 5)
    expect_view(stage, lines=len(expected("cross", heads={0, 2, 3}, query=3, threshold=0.1)))
    choose(stage, "guess")
    expect(stage.locator(".gf-flow-query .gf-flow-token")).to_have_count(5)
    expect_view(stage, pinned="query 3", heads="1 3 4")


def test_the_step_can_be_followed(stage):
    step_to(stage, 0)
    stage.get_by_role("button", name="Follow the step").click()
    expect_view(stage, pinned="query 0")
    step_to(stage, 2)
    expect_view(stage, pinned="query 2", lines=len(expected("cross", query=2)))


def test_python_may_pin_a_piece(stage):
    token(stage, "query", 3).click()
    expect(stage.get_by_text("told: query 3")).to_be_visible()
    stage.get_by_role("button", name="pin key 3").click()
    expect_view(stage, pinned="key 2", lines=len(expected("cross", key=2)))


# ---------------------------------------------------------------- hostile pieces, themes, sizes, files


def test_pieces_are_shown_letter_by_letter(stage):
    stage.on("dialog", lambda dialog: pytest.fail("a piece ran as script"))
    choose(stage, "hostile")
    expect(stage.locator(".gf-flow-key .gf-flow-piece")).to_have_count(16)
    shown = stage.locator(".gf-flow-key .gf-flow-piece").all_inner_texts()
    assert shown[:-1] == list(HOSTILE[:-1])
    assert shown[-1] == "⟨U+202E⟩evil"
    token(stage, "key", 0).click()
    assert stage.locator(".gf-flow :is(img, a, code, script)").count() == 0
    assert stage.locator(".gf-flow-token :is(b, i)").count() == 0
    picture = ElementTree.fromstring(save(stage, "SVG").decode())
    texts = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert set(HOSTILE[:13]) < set(texts)
    assert not {"img", "a", "b", "script"} & {node.tag.split("}")[1] for node in picture.iter()}


def test_pictures_are_saved(stage):
    token(stage, "query", 1).click()
    expect_view(stage, pinned="query 1")
    picture = ElementTree.fromstring(save(stage, "SVG").decode())
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}path"))) == len(expected("cross", query=1))
    png = save(stage, "PNG")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000


def test_long_sentences_scroll_inside_and_long_pieces_are_cut(stage):
    choose(stage, "long")
    expect(stage.locator(".gf-flow-key .gf-flow-piece")).to_have_count(62)
    box = stage.locator(".gf-flow-scroll")
    assert box.evaluate("box => box.scrollHeight > box.clientHeight && box.scrollWidth <= box.clientWidth")
    token(stage, "query", 50).scroll_into_view_if_needed()
    token(stage, "query", 50).hover()
    expect_view(stage, lines=len(expected("long", query=50)))
    assert painted_pixels(stage) > 500
    choose(stage, "hostile")
    expect(stage.locator(".gf-flow-key .gf-flow-piece")).to_have_count(16)
    long = token(stage, "key", 13)
    assert long.locator(".gf-flow-piece").evaluate("piece => piece.scrollWidth > piece.clientWidth")
    assert long.get_attribute("title") == HOSTILE[13]


def test_512_pieces_are_drawn_up_to_a_limit_that_is_stated(stage):
    choose(stage, "huge")
    stage.get_by_label("Hide lines below this weight").fill("0")
    count = stage.locator(".gf-flow-count")
    expect(count).to_contain_text("of 2,097,152 lines are drawn")
    expect(count).to_contain_text("More than 6,000 lines cannot be distinguished")
    expect(count).to_contain_text("Weights are rounded to 1/255.")
    assert 0 < int(stage.locator(".gf-flow").get_attribute("data-lines")) <= 6000
    assert stage.locator(".gf-flow-canvas").evaluate("canvas => canvas.height") < 2000


def test_dark_and_narrow(app, new_page):
    page = new_page(color_scheme="dark", viewport={"width": 390, "height": 844})
    open_page(page, f"{app.url}/flow")
    expect_view(page, theme="dark", lines=len(expected("cross")))
    colour = page.locator(".gf-flow-chip").first.evaluate("chip => chip.style.getPropertyValue('--head')")
    assert colour == "#3A7FE0"
    root = page.locator(".gf-flow")
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth")
    assert token(page, "key", 0).bounding_box()["x"] + token(page, "key", 0).bounding_box()["width"] <= 390


def test_it_can_be_seen_large_and_goes_back(stage):
    small = stage.locator(".gf-flow-canvas").bounding_box()
    chart_menu(stage, "Show this chart large")
    expect(stage.locator("dialog.gf-flow-dialog")).to_be_visible()
    box = stage.locator(".gf-flow-canvas").bounding_box
    comes_to(stage, lambda: all(box()[side] > small[side] for side in ("width", "height")), expected=True)
    token(stage, "query", 1).hover()
    expect_view(stage, focus="query 1")
    stage.get_by_role("button", name="Close").click()
    expect(stage.locator("dialog.gf-flow-dialog")).to_be_hidden()
    comes_to(stage, box, small)
