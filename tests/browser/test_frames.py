"""Steps that the browser draws by itself: without the server, to where one rests, and not what is to be guessed."""

import os
import re
import signal
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import click_candidate, expect_address, output
from tools.serve import serve

STEP = "/step?model=reverse&src=abcdef"
TITLES = ".gf-plot .gtitle"
FETCHED = "() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/frames/')).length"


def opened(tab, server, address=STEP):
    """The page, once its frames are there."""
    tab.evaluate("() => performance.clearResourceTimings()")
    turn_to(tab, server.url + address)
    comes_to(tab, lambda: tab.evaluate(FETCHED) > 2, True)
    wait_for_idle(tab)
    return tab


@contextmanager
def stopped(server):
    """The server answers nothing meanwhile."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_while_the_server_says_nothing_charts_follow_and_it_hears_of_the_last_step_alone(server, tab):
    page = opened(tab, server)
    with stopped(server):
        for n in (2, 3, 4):
            page.keyboard.press("ArrowRight")
            expect(page.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
        expect(page.locator(TITLES).nth(2)).to_contain_text("Step 4 looks at the source")
        expect(page.get_by_role("img", name="The most probable pieces after")).to_be_visible()
    expect_address(page, step="4")
    wait_for_idle(page)
    assert page.locator(TITLES).first.text_content() == "Step 4: candidates for the next piece"
    menu_link(page, "Masks").click()
    expect_address(page, step="4")
    page.go_back()
    expect(page.locator(TITLES).first).to_have_text("Step 4: candidates for the next piece")


def test_a_click_forces_a_piece_at_the_step_that_is_seen_for_which_nothing_was_drawn(server, tab):
    page = opened(tab, server, "/step?model=reverse&src=bcdefg")  # those of another sentence are fetched anew
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(TITLES).first).to_have_text("Step 4: candidates for the next piece")
    click_candidate(page, 1)
    comes_to(page, lambda: output(page)[:3], "gfe")
    expect_address(page, step="4")
    assert page.locator(".gf-target .gf-forced").count() == 1


def test_what_is_to_be_guessed_is_not_fetched(server, tab):
    tab.evaluate("() => performance.clearResourceTimings()")
    turn_to(tab, f"{server.url}{STEP}&guess=1&step=2")
    wait_for_idle(tab)
    tab.keyboard.press("ArrowRight")
    expect_address(tab, step="3")
    wait_for_idle(tab)
    assert tab.evaluate(FETCHED) == 0


def test_steps_ask_nobody_and_back_returns_to_each(server, new_page):
    page = new_page(fresh=True)
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(data)))
    open_page(page, f"{server.url}{STEP}")
    comes_to(page, lambda: page.evaluate(FETCHED) > 2, True)
    wait_for_idle(page)
    masks = menu_link(page, "Masks")  # unfolded by a click
    sent.clear()
    for n in (2, 3, 4):
        page.keyboard.press("ArrowRight")
        expect_address(page, step=str(n))
        expect(masks).to_have_attribute("href", re.compile(f"step={n}"))
    assert not sent
    entries = page.evaluate("history.length")
    page.locator("h1").click()  # anything but a step
    comes_to(page, lambda: len(sent), 1)
    for n in (3, 2, 1):
        wait_for_idle(page)
        page.go_back()
        expect(page.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
    wait_for_idle(page)
    page.go_forward()
    expect(page.locator(TITLES).first).to_have_text("Step 2: candidates for the next piece")
    wait_for_idle(page)
    assert page.evaluate("history.length") == entries


def test_back_to_the_only_step_that_the_server_has_heard_of_leads_there(server, tab):
    page = opened(tab, server, "/step?model=reverse&src=hgfedc")
    page.keyboard.press("ArrowRight")
    expect_address(page, step="2")
    page.go_back()
    expect(page.locator(TITLES).first).to_have_text("Step 1: candidates for the next piece")
    wait_for_idle(page)
    assert page.locator(".gf-stepper").get_attribute("data-step") == "0"
    expect(menu_link(page, "Masks")).not_to_have_attribute("href", re.compile("step="))
    page.go_forward()
    expect(page.locator(TITLES).first).to_have_text("Step 2: candidates for the next piece")


def test_a_step_that_nobody_was_told_of_stands_after_the_server_has_begun_anew(new_page, tmp_path):
    with serve(log=tmp_path / "one") as server:
        page = opened(new_page(fresh=True), server)
        page.keyboard.press("ArrowRight")
        expect_address(page, step="2")  # else there is nothing yet of which a click could tell
        page.locator("h1").click()
        wait_for_idle(page)
        page.keyboard.press("ArrowRight")
        expect_address(page, step="3")
        port = server.port
    with serve(log=tmp_path / "two", port=port) as server:
        comes_to(page, lambda: ": reverse, " in server.log_text(), expected=True)
        wait_for_idle(page)
        expect(page.locator(TITLES).first).to_have_text("Step 3: candidates for the next piece")
        page.get_by_role("button", name="Examples").click()
        wait_for_idle(page)
        expect_address(page, step="3")
        expect(page.locator(TITLES).first).to_have_text("Step 3: candidates for the next piece")
