"""The first page, from typing a sentence to going back: real keys and clicks in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, VIEWPORT, comes_to, menu_link, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.made_up import IMAGE, NAME
from tests.browser.story import (
    FIFTEEN,
    SETTLED_MS,
    address,
    arrive,
    browser_step,
    choose_output,
    click_candidate,
    expect_address,
    model_runs,
    open_step,
    output,
    outputs,
    shown,
    source_box,
    switch,
    type_source,
    wait_for_charts,
)

CAPTION = ".gf-stepper .gf-caption"
REVERSE = "?model=reverse&src=abcdef"


# ---------------------------------------------------------------- stepping


def test_a_typed_sentence_grows_piece_by_piece(own_server, tab):
    page = open_step(tab, own_server)
    type_source(page, "abcdef")
    arrive(page, 1)
    seen = [output(page)]
    for _ in range(6):
        page.keyboard.press("ArrowRight")
        seen.append(output(page))
    assert seen == ["f", "fe", "fed", "fedc", "fedcb", "fedcba", "fedcba"]
    assert page.locator(".gf-source .gf-chip").first.get_attribute("title").startswith("a, id 29, weight ")
    arrive(page, 7)
    expect(page.locator(CAPTION)).to_contain_text("The model ended the sentence.")


def test_twenty_quick_presses_are_twenty_steps_and_no_run(own_server, tab):
    page = open_step(tab, own_server, f"?model={NAME}&src=ba&max=40&layer=2&head=1")
    before = model_runs(own_server)
    shading = page.locator(".gf-source .gf-chip").first.get_attribute("style")
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(30)
    assert browser_step(page) == 21  # at once
    assert page.locator(".gf-source .gf-chip").first.get_attribute("style") != shading
    arrive(page, 21)
    expect(page.locator(".st-key-cross_row")).to_contain_text("Step 21")
    expect_address(page, step="21")
    assert model_runs(own_server) == before


def test_buttons_slider_and_play(own_server, tab):
    page = open_step(tab, own_server, f"?model={NAME}&src=ba&max=8")
    before = model_runs(own_server)
    page.get_by_label("Next step").click()
    comes_to(page, lambda: browser_step(page), 2)
    page.get_by_label("Last step").click()
    comes_to(page, lambda: browser_step(page), 8)
    page.get_by_label("Back one step").click()
    page.get_by_label("First step").click()
    comes_to(page, lambda: browser_step(page), 1)
    page.get_by_label("Step", exact=True).press("ArrowRight")
    comes_to(page, lambda: browser_step(page), 2)
    page.get_by_label("Playing speed").select_option("4")
    page.get_by_label("Play", exact=True).click()
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", "7", timeout=SETTLED_MS)
    expect(page.get_by_label("Play", exact=True)).to_be_visible()  # it stopped by itself
    arrive(page, 8)
    assert model_runs(own_server) == before


def test_arrows_in_the_sentence_move_the_cursor_only(own_server, tab):
    page = open_step(tab, own_server, REVERSE)
    source_box(page).click()
    for key in ("ArrowRight", "ArrowLeft", "End", "Home", " ", "Backspace"):  # a blank left there is another run
        source_box(page).press(key)
    assert browser_step(page) == 1
    page.locator(CAPTION).click()
    page.keyboard.press("ArrowRight")
    comes_to(page, lambda: browser_step(page), 2)


def test_the_chosen_head_shades_the_source(own_server, tab):
    page = open_step(tab, own_server, f"{REVERSE}&step=3")
    expect(page.locator(".gf-note")).to_contain_text("mean of all 2 layers × 4 heads")
    page.get_by_role("radiogroup", name="Decoder layer").get_by_text("2", exact=True).click()
    expect(page.locator(".gf-note")).to_contain_text("layer 2, mean of its 4 heads")
    expect(page.locator(".st-key-cross_map")).to_contain_text("layer 2, mean of its 4 heads")
    expect_address(page, layer="2")
    assert browser_step(page) == 3


# ---------------------------------------------------------------- branches and results


def test_a_clicked_candidate_branches_and_one_click_returns(own_server, page):
    open_step(page, own_server, f"{REVERSE}&step=3")
    click_candidate(page, 1)
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    comes_to(page, lambda: outputs(page)[:1], ["Model's own choice fedcba"])
    branch = outputs(page)[1]
    assert browser_step(page) == 3
    assert re.match(r"Step 3: \S+ fe", branch)
    comes_to(page, lambda: address(page).get("forced", "").count("."), 2)
    before = model_runs(own_server)
    choose_output(page, 0)
    page.locator(CAPTION).click()  # arrows in the list choose another output
    page.keyboard.press("End")
    comes_to(page, lambda: output(page), "fedcba")
    expect_address(page, forced=None)
    comes_to(page, lambda: outputs(page)[1:], [branch])
    choose_output(page, 1)
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    assert model_runs(own_server) == before  # both were kept


WIDE = {"width": 1440, "height": 800}  # here the model's own output has room in one row, and the branch has not


@pytest.mark.parametrize(
    "size",
    [pytest.param(VIEWPORT, marks=pytest.mark.deep), PHONE, pytest.param(WIDE, marks=pytest.mark.deep)],
    ids=["laptop", "phone", "wide"],
)
def test_a_forced_piece_leaves_the_first_charts_where_they_are(server, new_page, size):
    page = new_page(viewport=size)
    open_step(page, server, f"step?model=zh-en&src={FIFTEEN}&step=5")
    before = _tops(page)
    click_candidate(page, 1)
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    expect(page.locator(".st-key-branch_choice")).to_contain_text("Model's own choice")
    assert _tops(page) == pytest.approx(before, abs=8)


def _tops(page):
    """How far down in the page the charts of the first screen begin."""
    wait_for_charts(page)
    wait_for_rest(page)
    return page.evaluate(
        """keys => {
          const main = document.querySelector("[data-testid=stMain]");
          return keys.map(key => main.scrollTop
            + document.querySelector(`.st-key-${key} .gf-chart`).getBoundingClientRect().top);
        }""",
        ["candidates", "cross_map"] if page.viewport_size["width"] > 900 else ["candidates"],
    )


def test_each_result_of_beam_search_can_be_stepped_through(own_server, tab):
    page = open_step(tab, own_server, "?model=reverse&src=abc")
    switch(page, "Beam")
    comes_to(page, lambda: [text.split()[0] for text in outputs(page)], ["1.", "2.", "3.", "4."])
    listed = outputs(page)
    choose_output(page, 2)
    page.keyboard.press("ArrowRight")  # the choice that was clicked has the focus, but the key is the steps'
    comes_to(page, lambda: browser_step(page), 2)
    page.keyboard.press("End")
    comes_to(page, lambda: output(page), listed[2].split()[1])
    arrive(page, len(output(page)) + 1)
    expect_address(page, result="3")


# ---------------------------------------------------------------- the address


def test_a_reload_and_a_pasted_link_show_the_same(own_server, new_page):
    page = open_step(new_page(), own_server, f"{REVERSE}&layer=2&head=2")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    arrive(page, 3)
    click_candidate(page, 2)
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    wait_for_charts(page)
    before = shown(page)
    page.reload()
    wait_for_idle(page)
    wait_for_charts(page)
    comes_to(page, lambda: shown(page), before)
    other = open_step(new_page(), own_server, page.url.split("/", 3)[3])
    comes_to(other, lambda: shown(other), before)


def test_back_returns_to_the_former_state(own_server, tab):
    page = open_step(tab, own_server, REVERSE)
    page.keyboard.press("ArrowRight")
    arrive(page, 2)
    type_source(page, "noon")
    arrive(page, 1)
    for step in (2, 1):
        page.go_back()
        arrive(page, step)
        expect(source_box(page)).to_have_value("abcdef")
        expect(page.locator(".gf-stepper")).to_have_attribute("data-step", str(step - 1))
    page.go_forward()
    arrive(page, 2)
    comes_to(page, lambda: browser_step(page), 2)


def test_another_page_and_back_keeps_the_sentence(own_server, tab):
    page = open_step(tab, own_server, f"{REVERSE}&step=3")
    for leave in (page.go_back, menu_link(page, "Step through decoding").click):
        menu_link(page, "Checkpoints").click()
        expect(page.get_by_role("heading", name="Folders")).to_be_visible()
        wait_for_idle(page)
        leave()
        arrive(page, 3)
        expect(source_box(page)).to_have_value("abcdef")


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
    for _ in range(12):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(230)  # just longer than what counts as rest
        seen.append(browser_step(page))
    assert seen == sorted(seen)
    arrive(page, 13)
    expect_address(page, step="13")


# ---------------------------------------------------------------- sentences that need a word


def test_what_is_too_long_or_empty_is_explained(own_server, tab):
    page = open_step(tab, own_server, REVERSE)
    before = page.url
    type_source(page, "x" * 5000)
    expect(page.get_by_role("alert")).to_contain_text("The source has 5,000 characters; the limit is 4,000.")
    expect(page.locator(".gf-source .gf-chip")).to_have_count(7)  # the last result
    assert page.url == before
    type_source(page, "")
    expect(page.get_by_role("status")).to_contain_text("Type some text above, or pick an example.")
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("menuitem", name="noon").click()
    arrive(page, 1)
    expect(source_box(page)).to_have_value("noon")


def test_markup_is_literal_everywhere(own_server, new_page):
    page = open_step(new_page(), own_server, f"?model={NAME}&how=sampling&seed=1&max=40")
    type_source(page, f"{IMAGE} :streamlit: www.example.org a@b.co -> x $x^2$ **b** 😀")
    expect(page.locator(".gf-source .gf-chip").nth(1)).to_contain_text(IMAGE)
    page.keyboard.press("End")
    arrive(page, 40)
    click_candidate(page, 3)  # a branch, so that both outputs are listed as text of the page
    expect(page.locator(CAPTION)).to_contain_text("you chose")
    main = page.get_by_test_id("stMain")
    assert main.locator("img, script, iframe, .katex").count() == 0
    links = main.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert [link for link in links if not link.startswith("#")] == []
    sidebar = page.get_by_test_id("stSidebar")
    assert sidebar.locator("img[src=x], [data-testid=stSidebarUserContent] a:not(.st-key-menu a)").count() == 0
    written = main.inner_text().replace("\u2060", "")
    for piece in ("<script>alert(2)</script>", ":red[x]", "$x^2$", "www.example.org", "{{x}}"):
        assert piece in written
    assert IMAGE in sidebar.inner_text()
    menu_link(page, "Checkpoints").click()
    expect(page.get_by_role("heading", name="Folders")).to_be_visible()
    expect(main).to_contain_text(IMAGE)
    assert main.locator("img, script, iframe, .katex, p a").count() == 0


# ---------------------------------------------------------------- small windows


@pytest.mark.parametrize(("scheme", "width"), [pytest.param("light", 1280, marks=pytest.mark.deep), ("dark", 390)])
def test_nothing_is_wider_than_the_window(own_server, new_page, width, scheme):
    touch = {"has_touch": True, "is_mobile": True} if width < 600 else {}
    page = new_page(viewport={"width": width, "height": 720}, color_scheme=scheme, **touch)
    open_step(page, own_server, f"?model={NAME}&how=beam&max=40&src=ba+lo+mi+ta+ke+su+abcdefghijklmnopqrstuvwxyz")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    too_wide = page.evaluate(
        """() => { const main = document.querySelector('[data-testid=stMain]');
          return main.scrollWidth > main.clientWidth; }"""
    )
    assert not too_wide
    for label in ("First step", "Back one step", "Play", "Next step", "Last step", "Step", "Playing speed"):
        box = page.get_by_label(label, exact=True).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["height"] >= 20
    page.get_by_label("Next step").click()
    comes_to(page, lambda: browser_step(page), 2)
    if width < 600:
        page.get_by_test_id("stExpandSidebarButton").click()
        expect(page.get_by_test_id("stSidebar").get_by_text("Checkpoint", exact=True)).to_be_visible()
