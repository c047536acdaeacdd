"""The Translate page is typed into, stepped, branched, played and guessed without losing or inventing a piece."""

import re

from playwright.sync_api import expect

from tests.browser.helpers import PHONE, VIEWPORT, WIDER, comes_to, menu_link, turn_to, wait_for_idle
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import (
    SETTLED_MS,
    address,
    arrive,
    browser_step,
    charts_are_drawn,
    choose_output,
    click_candidate,
    decode,
    expect_address,
    model_runs,
    open_step,
    output,
    outputs,
    source_box,
    switch_guessing,
    type_source,
)

CAPTION = ".gf-stepper .gf-caption"
REVERSE = "?model=reverse&src=abcdef"


def test_a_typed_sentence_grows_and_branches(own_server, new_page):
    page = open_step(new_page(), own_server)
    type_source(page, "abcdef")
    arrive(page, 1)
    seen = [output(page)]
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        seen.append(output(page))
    assert seen == ["f", "fe", "fed", "fedc", "fedcb", "fedcba", "fedcba"]
    assert page.locator(".gf-source .gf-chip").first.get_attribute("title").startswith("a, id 29, weight ")
    expect(page.locator(CAPTION)).to_contain_text("The model ended the sentence.")
    source_box(page).click()
    for key in ("ArrowRight", "ArrowLeft", "End", "Home", " ", "Backspace"):  # a blank left there is another run
        source_box(page).press(key)
    assert browser_step(page) == 7
    page.locator(CAPTION).click()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    arrive(page, 3)

    click_candidate(page, 1)
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    comes_to(page, lambda: outputs(page)[:1], ["Model's own choice fedcba"])
    branch = outputs(page)[1]
    assert re.match(r"Step 3: \S+ fe", branch)
    comes_to(page, lambda: address(page).get("forced", "").count("."), 2)
    wait_for_idle(page)
    runs = model_runs(own_server)
    choose_output(page, 0)
    page.locator(CAPTION).click()  # arrows in the list choose another output
    page.keyboard.press("End")
    comes_to(page, lambda: output(page), "fedcba")
    expect_address(page, forced=None)
    assert model_runs(own_server) == runs  # both were kept


def test_a_search_is_played_a_guess_waited_for_and_a_piece_hidden(own_server, page):
    results_of_a_search_are_stepped_through_and_played(own_server, page)
    candidates_stay_hidden_and_play_waits_until_somebody_guesses(own_server, page)
    a_piece_of_the_sentence_is_hidden_by_a_click(own_server, page)


def results_of_a_search_are_stepped_through_and_played(own_server, page):
    open_step(page, own_server, "?model=reverse&src=abc")
    decode(page, "Beam")
    comes_to(page, lambda: [text.split()[0] for text in outputs(page)], ["1.", "2.", "3.", "4."])
    expect_address(page, how="beam")
    listed = outputs(page)
    choose_output(page, 2)
    before = model_runs(own_server)
    page.keyboard.press("ArrowRight")  # the choice that was clicked has the focus, but the key is the steps'
    comes_to(page, lambda: browser_step(page), 2)
    page.get_by_label("Playing speed").select_option("4")
    page.get_by_label("Play", exact=True).click()
    comes_to(page, lambda: output(page), listed[2].split()[1])
    arrive(page, len(output(page)) + 1)
    expect(page.get_by_label("Play", exact=True)).to_be_visible()  # it stopped by itself
    expect_address(page, result="3")
    assert model_runs(own_server) == before


def test_a_slow_connection_never_throws_the_reader_back(own_server, new_page):
    """Every message of the server comes late, so steps are reported with an address that is out of date."""
    page = new_page(fresh=True)  # the route would slow every later test down

    def slow(socket):
        server = socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(lambda message: (page.wait_for_timeout(80), socket.send(message)))

    page.route_web_socket(re.compile("/_stcore/stream"), slow)
    open_step(page, own_server, f"?model={NAME}&src=ba&max=30")
    seen = []
    for _ in range(8):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(230)  # just longer than what counts as rest
        seen.append(browser_step(page))
    assert seen == sorted(seen)
    arrive(page, 9)
    expect_address(page, step="9")


def test_markup_is_literal_everywhere_and_nothing_is_wider_than_a_phone(own_server, new_page):
    page = open_step(new_page(), own_server, f"?model={NAME}&how=sampling&seed=1&max=40")
    type_source(page, f"{IMAGE} :streamlit: www.example.org a@b.co -> x $x^2$ **b** 😀")
    expect(page.locator(".gf-source .gf-chip").nth(1)).to_contain_text(IMAGE)
    page.keyboard.press("End")
    arrive(page, 40)
    click_candidate(page, 3)  # a branch, so that both outputs are listed as text of the page
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    main, sidebar = page.get_by_test_id("stMain"), page.get_by_test_id("stSidebar")
    page.set_viewport_size(PHONE)
    wait_for_idle(page)
    comes_to(page, lambda: max(page.evaluate(WIDER)) <= 0, expected=True)
    for label in ("First step", "Back one step", "Play", "Next step", "Last step", "Step", "Playing speed"):
        box = page.get_by_label(label, exact=True).bounding_box()
        assert 0 <= box["x"] <= PHONE["width"] - box["width"], label
        assert box["height"] >= 40, label
    assert main.locator("img, script, iframe, .katex").count() == 0
    texts = main.locator("a:not(.st-key-tabs a, .st-key-model_strip a)")
    links = texts.evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#")] == []
    written = main.inner_text().replace("\u2060", "")
    for piece in ("<script>alert(2)</script>", ":red[x]", "$x^2$", "www.example.org", "{{x}}"):
        assert piece in written
    page.set_viewport_size(VIEWPORT)
    expect(sidebar).to_contain_text(IMAGE)
    assert sidebar.locator("img[src=x], [data-testid=stSidebarUserContent] a:not(.st-key-menu a)").count() == 0
    menu_link(page, "My model").click()
    menu_link(page, "Checkpoints").click()
    expect(page.get_by_role("heading", name="Folders")).to_be_visible()
    wait_for_idle(page)
    page.locator("summary", has_text="How each score was computed").click()
    for text in (f"Data {IMAGE}", "**none** $x^2$", "<b>key</b>", "<i>value</i>"):
        expect(main).to_contain_text(text)
    assert main.locator("img, script, iframe, .katex, p a, td b, td i, td a").count() == 0


def candidates_stay_hidden_and_play_waits_until_somebody_guesses(own_server, page):
    open_step(page, own_server, REVERSE)
    switch_guessing(page)
    expect_address(page, how=None)  # what was chosen before, in what is folded since, is not sent again
    charts_are_drawn(page)
    expect(page.locator(".st-key-candidates")).to_have_count(0)
    main = page.get_by_test_id("stMain")
    assert "fedcba" not in main.inner_text()
    expect(page.locator(".gf-text")).to_have_text("?")
    page.get_by_label("What comes next? Your guess:").fill("f")
    page.get_by_role("button", name="Reveal").click()
    expect(main).to_contain_text("Right. The model gave “f”")
    arrive(page, 1)
    page.evaluate("document.activeElement.blur()")
    page.get_by_label("Playing speed").select_option("4")
    page.get_by_label("Play", exact=True).click()
    comes_to(page, lambda: output(page), "f?")
    expect(page.locator(CAPTION)).to_contain_text("Playback waits for your guess.")
    expect(page.get_by_label("Play", exact=True)).to_be_visible()
    expect_address(page, step="2", guess="1")


def a_piece_of_the_sentence_is_hidden_by_a_click(own_server, page):
    turn_to(page, f"{own_server.url}/step?model=filling&src=the+quick+fox&hidden=2")
    chips = page.locator(".gf-stepper .gf-source .gf-chip")
    expect(chips.nth(1)).to_have_attribute("aria-pressed", "true", timeout=SETTLED_MS)
    chips.nth(2).click()
    expect(page.get_by_text("Token 3: candidates for the hidden token")).to_be_visible(timeout=SETTLED_MS)
    wait_for_idle(page)
    expect_address(page, hidden="3")
    chips.nth(3).press("Enter")
    expect(page.get_by_text("Token 4: candidates for the hidden token")).to_be_visible(timeout=SETTLED_MS)
    expect(page.locator(".gf-stepper .gf-controls")).to_be_hidden()  # there is nothing to step through
