"""The reader's own say on the Step page in a real browser: the next piece guessed, another piece forced."""

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, wait_for_idle
from tests.browser.story import address, arrive, browser_step, open_step, output, switch, wait_for_charts

CAPTION = ".gf-stepper .gf-caption"
REVERSE = "?model=reverse&src=abcdef"


def test_candidates_stay_hidden_until_somebody_guesses(server, tab):
    page = open_step(tab, server, REVERSE)
    switch(page, "Hide candidates until I guess")
    wait_for_charts(page)
    expect(page.locator(".st-key-candidates")).to_have_count(0)
    main = page.get_by_test_id("stMain")
    assert "fedcba" not in main.inner_text()
    comes_to(page, lambda: output(page), "?")
    page.get_by_label("What comes next? Your guess:").fill("f")
    page.get_by_role("button", name="Reveal").click()
    expect(main).to_contain_text("Right. The model gave “f”")
    arrive(page, 1)
    comes_to(page, lambda: output(page), "f")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    comes_to(page, lambda: output(page), "f?")
    expect(page.get_by_role("button", name="Reveal")).to_be_visible()
    wait_for_idle(page)
    here = {"model": "reverse", "rev": "", "src": "abcdef", "step": "2", "guess": "1"}
    comes_to(page, lambda: address(page) | {"rev": ""}, here)
    page.reload()
    wait_for_idle(page)
    expect(page.locator(".gf-stepper")).to_be_visible()
    comes_to(page, lambda: (output(page), browser_step(page)), ("f?", 2))


def test_play_stops_at_each_step_that_nobody_has_guessed(server, tab):
    page = open_step(tab, server, "?model=reverse&src=letter&guess=1")  # of which no step was guessed before
    page.get_by_label("Playing speed").select_option("4")
    for step in (1, 2):
        page.get_by_label("Play", exact=True).click()
        expect(page.locator(".gf-stepper")).to_have_attribute("data-step", str(step - 1))
        expect(page.locator(CAPTION)).to_contain_text(f"Step {step} of 7")
        expect(page.locator(CAPTION)).to_contain_text("Playback waits for your guess.")
        page.wait_for_timeout(700)  # two steps of play
        assert browser_step(page) == step
        expect(page.get_by_label("Play", exact=True)).to_be_visible()
        wait_for_idle(page)
        expect(page.locator(CAPTION)).to_contain_text("Playback waits for your guess.")
        page.get_by_role("button", name="Reveal").click()
        expect(page.locator(".st-key-candidates")).to_contain_text(f"Step {step}:")
        expect(page.locator(CAPTION)).to_contain_text("predicts ‘")
        wait_for_idle(page)
    page.keyboard.press("ArrowRight")  # keys may go on
    page.keyboard.press("ArrowRight")
    comes_to(page, lambda: browser_step(page), 4)
    expect(page.locator(CAPTION)).not_to_contain_text("Playback waits")
    page.get_by_label("Playing speed").select_option("1")


def test_what_is_no_piece_is_said_at_the_field_and_a_piece_offered(server, tab):
    page = open_step(tab, server, "?model=zh-en")
    field = page.get_by_role("textbox", name="Force another piece here")
    field.fill("glasshouse")
    field.press("Enter")
    said = page.get_by_text("is not a single piece of this model")
    expect(said).to_have_count(1)
    wait_for_idle(page)
    expect(field).to_have_value("glasshouse")
    assert said.bounding_box()["y"] > field.bounding_box()["y"]
    page.get_by_role("button", name="▁glass", exact=True).click()
    expect(page.locator(CAPTION)).to_contain_text("you chose ‘▁glass’")
    expect(said).to_have_count(0)
    expect(page.get_by_role("textbox", name="Force another piece here")).to_have_value("")
