"""The stepper moves at once, tells Python once where one rests, and leaves keys alone that belong to others."""

from urllib.parse import quote

from playwright.sync_api import expect

from tests.browser.components import CELLS, FIRST_CHART_MS, browser_step, choose_run, expect_step, runs, switch
from tests.browser.helpers import comes_to, open_page, turn_to, wait_for_idle
from tests.browser.story import output

# Pressed within the page, one right after the other: from outside, on a busy machine, two presses may be further
# apart than what counts as rest.
PRESSES = """([key, times]) => {
  const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  for (let n = 0; n < times; n += 1) press();
}"""
WEIGHTS = "chips => chips.map(chip => Number(chip.style.getPropertyValue('--weight')))"


def test_buttons_keys_slider_and_pieces_move_it_at_once_and_a_guess_gives_nothing_away(player):
    player.keyboard.press("ArrowRight")
    comes_to(player, lambda: output(player), "w0 w1")
    assert player.locator(".gf-new").inner_text().strip() == "w1"
    assert player.locator(".gf-source .gf-chip").evaluate_all(WEIGHTS) == [float(place == 1) for place in range(24)]
    caption, note = player.locator(".gf-stepper .gf-caption"), player.locator(".gf-note")
    expect(caption).to_contain_text("Step 2 of 24: reads ‘▁w0’, predicts ‘▁w1’ (p = 0.83)")
    player.get_by_label("Last step").click()
    expect_step(player, 23)
    expect(caption).to_contain_text("It ended.")
    player.get_by_label("Back one step").click()
    expect_step(player, 22)
    player.get_by_label("First step").click()
    player.get_by_label("Next step").click()
    player.locator(".gf-slider").press("ArrowRight")
    expect_step(player, 2)
    for word in ("w12", "w0"):  # of the text, one that is still to come and one that is there
        player.locator(".gf-text").get_by_text(word, exact=True).click()
        expect_step(player, int(word[1:]))
    player.locator(".gf-target .gf-chip").nth(8).click()  # the first chip is the start piece
    expect_step(player, 7)
    wait_for_idle(player)

    # A piece of the source says who looks at it, after a click and by the keyboard.
    player.locator(".gf-source .gf-chip").nth(3).click()
    expect(note).to_have_text("The output is shaded by its attention to ‘▁w3’, which is strongest at step 4 (1.00)")
    written = player.locator(".gf-target .gf-chip:not(.gf-start)")
    assert written.evaluate_all(WEIGHTS) == [float(step == 3) for step in range(24)]
    player.keyboard.press("ArrowRight")  # a click leaves the focus there, but the arrows are meant for the steps
    expect_step(player, 8)
    player.locator(".gf-source .gf-chip").nth(3).click()
    expect(note).not_to_contain_text("attention to")
    player.get_by_label("First step").focus()
    for _ in range(4):  # an output that slides is a stop, too, and so is the button that shows all of it
        player.keyboard.press("Shift+Tab")
        if player.locator(".gf-source .gf-chip:focus").count():
            break
    for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
        player.keyboard.press(key)
    expect(player.locator(".gf-source .gf-picked")).to_have_text("▁w2")
    expect_step(player, 8)
    player.keyboard.press("Escape")
    expect(player.locator(".gf-source .gf-picked")).to_have_count(0)

    player.locator(".gf-stepper").focus()  # in the list the key is the pieces'
    player.keyboard.press("Home")
    guess_mode_gives_nothing_away_and_keys_are_left_alone(player)


def test_quick_presses_are_one_report_and_it_plays_to_its_end(player):
    before = runs(player)
    player.evaluate(PRESSES, ["ArrowRight", 20])
    expect_step(player, 20)
    expect(player.get_by_text("python: plain step 20")).to_be_visible()
    wait_for_idle(player)
    assert runs(player) == before + 1
    player.locator(".gf-speed").select_option("4")
    player.locator(".gf-stepper").focus()
    player.keyboard.press("Space")
    expect(player.get_by_label("Pause")).to_be_visible()
    expect_step(player, 23)
    expect(player.get_by_label("Play", exact=True)).to_be_visible()
    choose_run(player, "other")  # which starts where Python says
    expect_step(player, 0)
    comes_to(player, lambda: output(player), "one")


def keys_are_left_alone_while_typing_and_under_a_dialog(player):
    player.get_by_label("typing").click()
    player.keyboard.press("ArrowRight")
    player.keyboard.press("End")
    expect_step(player, 0)
    player.get_by_role("button", name="open dialog").click()
    expect(player.get_by_text("inside")).to_be_visible()
    player.keyboard.press("ArrowRight")
    expect_step(player, 0)


def guess_mode_gives_nothing_away_and_keys_are_left_alone(player):
    switch(player, "guess")
    player.evaluate("document.activeElement.blur()")
    for step in (3, 4):
        while browser_step(player) < step:
            player.keyboard.press("ArrowRight")
        shown = "".join(player.locator(f".gf-stepper {part}").inner_html() for part in (".gf-target", ".gf-caption"))
        assert f"w{step}" not in shown
        assert f"w{step - 1}" in shown
        assert "0.83" not in player.locator(".gf-now").inner_html()
        assert player.locator(".gf-text").inner_text().endswith("?")
    player.locator(".gf-source .gf-chip").nth(10).click()
    expect(player.locator(".gf-note")).to_contain_text("(0.00)")  # what comes later is not looked at
    assert not any(player.locator(".gf-target .gf-chip").evaluate_all(WEIGHTS))
    switch(player, "guess")
    expect(player.locator(".gf-now")).to_contain_text("w4")
    player.evaluate("document.activeElement.blur()")
    player.keyboard.press("Home")
    expect(player.get_by_text("python: plain step 0")).to_be_visible()  # told later, it would close the dialog
    wait_for_idle(player)
    keys_are_left_alone_while_typing_and_under_a_dialog(player)


def test_python_moves_it_and_a_rerun_or_another_page_leaves_its_keys_in_order(app, stage, new_page):
    stage.get_by_label("Next step").focus()
    stage.evaluate("window.keptPlot = document.querySelector(\"[aria-label='An attention map.']\")")
    stage.keyboard.press("Enter")
    expect(stage.get_by_text("python: plain step 1", exact=True)).to_be_visible()
    wait_for_idle(stage)
    focused = "document.activeElement.shadowRoot.activeElement.getAttribute('aria-label')"
    assert stage.evaluate(focused) == "Next step"
    assert stage.evaluate("window.keptPlot.isConnected")
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
    choose_run(stage, "nothing")
    expect(stage.locator(".gf-stepper .gf-caption")).to_have_text("It ended.")
    stage.keyboard.press("ArrowRight")
    expect(stage.get_by_text("Nothing to draw yet.")).to_be_visible()
    page = new_page()
    open_page(page, f"{app.url}/player")  # its session goes on wanting that step
    page.keyboard.press("End")
    expect(page.get_by_text("python: plain step 23")).to_be_visible()
    page.get_by_role("button", name="jump to step 2").click()
    expect_step(page, 1)


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


def test_the_source_piece_that_is_looked_at_is_in_view(server, page):
    turn_to(page, f"{server.url}/attention?model=en-fr&layer=2&head=1&src={quote(LONG)}")
    page.keyboard.press("Home")
    expect_step(page, 0)
    seen = []
    for step in range(1, 21):
        page.keyboard.press("ArrowRight")
        expect_step(page, step)
        page.evaluate("() => new Promise(requestAnimationFrame)")  # at the next frame the list is scrolled
        seen.append(page.locator(".gf-source .gf-pieces").evaluate(STRONGEST))
    assert all(whole for _, whole in seen)
    assert any(scrolled > 0 for scrolled, _ in seen)  # else every piece had room
