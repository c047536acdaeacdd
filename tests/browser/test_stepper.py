"""The stepper in a real browser: what no test without one can show."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.browser.components import CELLS, FIRST_CHART_MS, browser_step, choose_run, expect_step, runs, switch
from tests.browser.helpers import PHONE, comes_to, open_page, turn_to, wait_for_idle

# Pressed within the page, one right after the other: from outside, on a busy machine, two presses may be further
# apart than what counts as rest.
PRESSES = """([key, times]) => {
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  for (let n = 0; n < times; n += 1) press();
}"""
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


def test_twenty_quick_presses_are_twenty_steps_and_one_report(player):
    before = runs(player)
    player.evaluate(PRESSES, ["ArrowRight", 20])
    expect_step(player, 20)
    expect(player.get_by_text("python: plain step 20")).to_be_visible()
    wait_for_idle(player)
    assert runs(player) == before + 1


def test_all_pieces_of_a_row_are_shown_when_asked_for(player):
    player.set_viewport_size({"width": 900, "height": 720})
    side = player.locator(".gf-source")
    rows, more = side.locator(".gf-pieces"), side.locator(".gf-show-all")
    expect(more).to_have_text("Show all 24")
    low = rows.bounding_box()["height"]
    more.click()
    expect(more).to_have_text("Show fewer")
    assert rows.bounding_box()["height"] > low
    assert rows.evaluate("one => one.scrollHeight - one.clientHeight") <= 2
    more.click()
    comes_to(player, lambda: rows.bounding_box()["height"], low)


def test_output_and_shading_move_at_once(player):
    player.keyboard.press("ArrowRight")
    expect(player.locator(".gf-text")).to_have_text("w0 w1")
    assert player.locator(".gf-new").inner_text().strip() == "w1"
    weights = player.locator(".gf-source .gf-chip").evaluate_all(
        "chips => chips.map(chip => Number(chip.style.getPropertyValue('--weight')))"
    )
    assert weights == [float(place == 1) for place in range(24)]
    assert (
        "Step 2 of 24: reads ‘▁w0’, predicts ‘▁w1’ (p = 0.83)" in player.locator(".gf-stepper .gf-caption").inner_text()
    )


def test_first_back_next_last_and_slider(player):
    player.get_by_label("Last step").click()
    expect_step(player, 23)
    assert "It ended." in player.locator(".gf-stepper .gf-caption").inner_text()
    player.get_by_label("Back one step").click()
    expect_step(player, 22)
    player.get_by_label("First step").click()
    expect_step(player, 0)
    player.get_by_label("Next step").click()
    player.locator(".gf-slider").press("ArrowRight")
    expect_step(player, 2)
    player.locator(".gf-target .gf-chip").nth(8).click()  # the first chip is the start piece
    expect_step(player, 7)


def test_home_end_and_space(player):
    player.keyboard.press("End")
    expect_step(player, 23)
    player.keyboard.press("Home")
    expect_step(player, 0)
    player.locator(".gf-speed").select_option("4")
    player.locator(".gf-stepper").focus()
    player.keyboard.press("Space")
    comes_to(player, lambda: browser_step(player) >= 2, expected=True)
    player.keyboard.press("Space")
    halted = browser_step(player)
    assert 2 <= halted < 23
    player.wait_for_timeout(600)  # two steps of play
    assert browser_step(player) == halted


def test_play_runs_to_the_end_and_stops(player):
    choose_run(player, "other")
    player.locator(".gf-speed").select_option("4")
    player.get_by_label("Play", exact=True).click()
    expect(player.get_by_label("Pause")).to_be_visible()
    expect(player.get_by_label("Play", exact=True)).to_be_visible()
    expect_step(player, 3)


def test_keys_are_left_alone_while_typing(player):
    player.get_by_label("typing").click()
    player.keyboard.press("ArrowRight")
    player.keyboard.press("End")
    expect_step(player, 0)


def test_keys_are_left_alone_under_a_dialog(player):
    player.get_by_role("button", name="open dialog").click()
    expect(player.get_by_text("inside")).to_be_visible()
    player.keyboard.press("ArrowRight")
    expect_step(player, 0)


def test_a_rerun_in_flight_never_jumps_back(player):
    switch(player, "slow")
    player.evaluate("document.activeElement.blur()")
    seen = []
    for press in range(24):
        if press < 12:
            player.keyboard.press("ArrowRight")
        player.wait_for_timeout(250)
        seen.append(browser_step(player))
    assert seen == sorted(seen)
    expect(player.get_by_text("python: plain step 12")).to_be_visible()


def test_a_new_revision_moves_the_reader(app, page):
    open_page(page, f"{app.url}/player")  # its session goes on wanting that step
    page.keyboard.press("End")
    expect(page.get_by_text("python: plain step 23")).to_be_visible()
    page.get_by_role("button", name="jump to step 2").click()
    expect(page.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    expect_step(page, 1)


def test_another_run_starts_where_python_says(player):
    player.keyboard.press("End")
    expect(player.get_by_text("python: plain step 23")).to_be_visible()
    choose_run(player, "other")
    expect_step(player, 0)
    expect(player.locator(".gf-text")).to_have_text("one")


def test_guess_mode_gives_nothing_away(player):
    switch(player, "guess")
    player.evaluate("document.activeElement.blur()")
    for step in (3, 4):
        while browser_step(player) < step:
            player.keyboard.press("ArrowRight")
        shown = (
            player.locator(".gf-stepper .gf-target").inner_html()
            + player.locator(".gf-stepper .gf-caption").inner_html()
        )
        assert f"w{step}" not in shown
        assert f"w{step - 1}" in shown
        assert "0.83" not in player.locator(".gf-now").inner_html()
        assert player.locator(".gf-text").inner_text().endswith("?")
    switch(player, "guess")
    expect(player.locator(".gf-now")).to_contain_text("w4")


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
    expect(stage.locator(".gf-stepper")).to_have_count(0)
    stage.keyboard.press("ArrowRight")
    stage.get_by_role("link", name="Step").click()
    expect(stage.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    wait_for_idle(stage)
    stage.evaluate("document.activeElement.blur()")
    stage.keyboard.press("ArrowRight")
    expect_step(stage, 1)


def test_a_run_without_output_says_so(stage):
    choose_run(stage, "nothing")
    expect(stage.locator(".gf-stepper .gf-caption")).to_have_text("It ended.")
    stage.keyboard.press("ArrowRight")
    expect(stage.get_by_text("Nothing to draw yet.")).to_be_visible()


def test_a_phone_shows_all_of_it(app, new_page):
    phone = new_page(visitor="touch", has_touch=True, viewport=PHONE)
    open_page(phone, f"{app.url}/step")
    expect(phone.locator(f"{CELLS} .main-svg").first).to_be_visible(timeout=FIRST_CHART_MS)
    main = "document.querySelector('[data-testid=\"stMain\"]')"
    assert phone.evaluate(f"{main}.scrollWidth <= {main}.clientWidth")
    for box in (each.bounding_box() for each in phone.locator(".gf-button, .gf-speed, .gf-slider").all()):
        assert box["width"] >= 40
        assert box["height"] >= 40


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(player, scheme):
    player.emulate_media(color_scheme=scheme)
    expect(player.locator(".gf-stepper")).to_have_attribute("data-theme", scheme)
    player.keyboard.press("ArrowRight")
    wait_for_idle(player)
    background = player.evaluate("getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor")
    chosen = player.locator(".gf-source .gf-chip").nth(1)  # weight 1: the strongest shade
    for place in (".gf-heading", ".gf-note", ".gf-caption", ".gf-new", ".gf-probability", ".gf-now .gf-piece"):
        for each in player.locator(f".gf-stepper {place}").all():
            colour = each.evaluate("node => getComputedStyle(node).color")
            assert player.evaluate(CONTRAST, [colour, [background]]) >= 4.5, place
    shade = chosen.evaluate("node => getComputedStyle(node).backgroundColor")
    colour = chosen.locator(".gf-piece").evaluate("node => getComputedStyle(node).color")
    assert player.evaluate(CONTRAST, [colour, [background, shade]]) >= 4.5


# ---------------------------------------------------------------- in the app

LONG = (
    "If it rains tomorrow, we will stay at home and read the old books that our grandfather bought in the little "
    "shop near the station when he was young, because nobody wants to walk through the cold streets of the town."
)
# How far the list of source pieces is scrolled, and whether all of the strongest piece is seen in it.
STRONGEST = """list => {
  const weight = chip => Number(chip.style.getPropertyValue("--weight"));
  const chip = [...list.children].reduce((best, next) => (weight(next) > weight(best) ? next : best));
  const [frame, place] = [list.getBoundingClientRect(), chip.getBoundingClientRect()];
  return [list.scrollTop, place.top >= frame.top - 1 && place.bottom <= frame.bottom + 1];
}"""


def test_a_source_piece_says_who_looks_at_it(player):
    player.locator(".gf-source .gf-chip").nth(3).click()
    note = player.locator(".gf-note")
    expect(note).to_have_text("The output is shaded by its attention to ‘▁w3’, which is strongest at step 4 (1.00)")
    weights = player.locator(".gf-target .gf-chip:not(.gf-start)").evaluate_all(
        "chips => chips.map(chip => Number(chip.style.getPropertyValue('--weight')))"
    )
    assert weights == [float(step == 3) for step in range(24)]
    player.keyboard.press("ArrowRight")  # a click leaves the focus there, but the arrows are meant for the steps
    expect_step(player, 1)
    player.locator(".gf-source .gf-chip").nth(3).click()
    expect(note).not_to_contain_text("attention to")


def test_source_pieces_are_one_stop_of_the_tab_key_and_arrows_go_between_them(player):
    player.get_by_label("First step").focus()
    for _ in range(4):  # an output that slides is a stop, too, and so is the button that shows all of it
        player.keyboard.press("Shift+Tab")
        if player.locator(".gf-source .gf-chip:focus").count():
            break
    player.keyboard.press("ArrowRight")
    player.keyboard.press("ArrowRight")
    player.keyboard.press("Enter")
    expect(player.locator(".gf-source .gf-picked")).to_have_text("▁w2")
    expect_step(player, 0)
    player.keyboard.press("Escape")
    expect(player.locator(".gf-source .gf-picked")).to_have_count(0)


def test_in_guess_mode_a_source_piece_gives_away_nothing_that_comes_later(player):
    switch(player, "guess")
    player.locator(".gf-source .gf-chip").nth(3).click()
    expect(player.locator(".gf-note")).to_contain_text("strongest at step 1 (0.00)")
    assert player.locator(".gf-target .gf-chip").evaluate_all(
        "chips => chips.every(chip => !Number(chip.style.getPropertyValue('--weight')))"
    )


def test_the_source_piece_that_is_looked_at_is_in_view(server, tab):
    turn_to(tab, f"{server.url}/attention?model=en-fr&layer=2&head=1&src={quote(LONG)}")
    tab.keyboard.press("Home")
    expect_step(tab, 0)
    seen = []
    for step in range(1, 21):
        tab.keyboard.press("ArrowRight")
        expect_step(tab, step)
        tab.evaluate("() => new Promise(requestAnimationFrame)")  # at the next frame the list is scrolled
        seen.append(tab.locator(".gf-source .gf-pieces").evaluate(STRONGEST))
    assert all(whole for _, whole in seen)
    assert any(scrolled > 0 for scrolled, _ in seen)  # else every piece had room
