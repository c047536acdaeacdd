"""Steps are drawn by the browser alone; the server hears where one rests, and sends nothing to be guessed."""

import os
import re
import signal
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.story import click_candidate, expect_address, output
from tools.serve import serve

STEP = "/step?model=reverse&src=abcdef"
TITLES = ".gf-plot .gtitle"
FETCHED = "() => performance.getEntriesByType('resource').filter(({ name }) => name.includes('/frames/')).length"


@contextmanager
def stopped(server):
    """The server answers nothing meanwhile."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def shows(page, step):
    expect(page.locator(TITLES).first).to_have_text(f"Step {step}: candidates for the next token")


def test_steps_ask_nobody_back_returns_to_each_and_a_click_is_one_at_the_step_that_is_seen(server, new_page):
    page = new_page()
    sent = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda data: sent.append(data)))
    open_page(page, server.url + STEP)
    comes_to(page, lambda: page.evaluate(FETCHED) > 0, True)
    wait_for_idle(page)
    masks = menu_link(page, "Masks")
    sent.clear()
    with stopped(server):
        for n in (2, 3, 4):
            page.keyboard.press("ArrowRight")
            shows(page, n)
            expect_address(page, step=str(n))
            expect(masks).to_have_attribute("href", re.compile(f"step={n}"))
    assert not sent
    page.locator(".st-key-intro").click()  # anything but a step
    comes_to(page, lambda: len(sent), 1)
    entries = page.evaluate("history.length")
    for n in (3, 2, 1):
        wait_for_idle(page)
        page.go_back()
        shows(page, n)
    wait_for_idle(page)
    expect(masks).not_to_have_attribute("href", re.compile("step="))
    page.go_forward()
    shows(page, 2)
    wait_for_idle(page)
    assert page.evaluate("history.length") == entries
    page.keyboard.press("ArrowRight")
    shows(page, 3)
    click_candidate(page, 1)
    comes_to(page, lambda: output(page)[:2], "fe")
    expect_address(page, step="3")
    comes_to(page, lambda: page.locator(".gf-target .gf-forced").count(), 1)

    # What is to be guessed is not fetched.
    page.evaluate("() => performance.clearResourceTimings()")
    turn_to(page, f"{server.url}{STEP}&guess=1&step=2")
    page.keyboard.press("ArrowRight")
    expect_address(page, step="3")
    wait_for_idle(page)
    assert page.evaluate(FETCHED) == 0


@pytest.mark.deep
def test_a_step_that_nobody_was_told_of_stands_after_the_server_has_begun_anew(new_page, tmp_path):
    with serve(log=tmp_path / "one") as server:
        page = new_page(fresh=True)
        open_page(page, server.url + STEP)
        comes_to(page, lambda: page.evaluate(FETCHED) > 0, True)
        page.keyboard.press("ArrowRight")
        expect_address(page, step="2")  # else there is nothing yet of which a click could tell
        page.locator(".st-key-intro").click()
        wait_for_idle(page)
        page.keyboard.press("ArrowRight")
        expect_address(page, step="3")
        port = server.port
    with serve(log=tmp_path / "two", port=port) as server:
        comes_to(page, lambda: ": reverse, " in server.log_text(), expected=True)
        wait_for_idle(page)
        shows(page, 3)
        page.get_by_role("button", name="Examples").click()
        wait_for_idle(page)
        expect_address(page, step="3")
        shows(page, 3)
