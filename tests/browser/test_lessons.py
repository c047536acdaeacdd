"""What a lesson covers is in nothing that the server sent before the answer; answers stay in the browser.

`tests/extensions/classroom/pages/test_lesson_walks.py` walks all lessons without a browser.
"""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect

from glassformer.extensions.lessons.library import Case, lessons, pose
from glassformer.runs.loading import SHIPPED
from glassformer.shared.drawing import plain
from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.lesson_numbers import covered, sent_of
from tests.browser.lesson_walks import WALKS, answer_of
from transformer import load
from transformer.i18n import say

PANEL = ".st-key-lesson_panel"
BEGIN, ANSWER = say("Begin"), say("Answer")
MOST_ENTRIES = 50  # of a history, in Chromium
NEXT, BACK, ALL = say("Next", about="lesson"), say("Back"), say("All lessons")


def told(page):
    """Everything that the server sends over its socket from now on."""
    frames = []

    def listen(socket):
        socket.on(
            "framereceived", lambda payload: frames.append(payload if isinstance(payload, bytes) else payload.encode())
        )

    page.on("websocket", listen)
    return frames


def flat(text):
    return "".join(text.split())


def says(page, text):
    """Wait until the panel says it, in whatever lines."""
    comes_to(page, lambda: flat(text) in flat(page.locator(PANEL).inner_text()), expected=True)


def commit(page, choice=None, text=None, *, button="Answer"):
    """Answer, and wait for what comes."""
    panel = page.locator(PANEL)
    if choice is not None:
        panel.locator("label").get_by_text(choice, exact=True).click()
    else:
        panel.get_by_role("textbox").fill(text)
    panel.get_by_role("button", name=button, exact=True).click()
    wait_for_idle(page)
    expect(panel.get_by_test_id("stAlert")).to_be_visible()


def answer(page, walk, posed, given):
    choice = walk.said(posed.label(given)) if posed.step.ask.form == "choice" else None
    commit(page, choice, given, button=walk.said(ANSWER))


def begin(page, server, walk):
    """Go from the list of lessons to the first step, with the sentence."""
    source = "" if walk.typed else f"&src={walk.sentence}"
    open_page(page, f"{server.url}/lessons?lang={walk.language}&model={walk.model}{source}")
    row = page.locator(f".st-key-lesson_list_{walk.lesson}")
    row.get_by_role("link", name=walk.said(BEGIN), exact=True).click()
    wait_for_idle(page)
    comes_to(page, lambda: f"lesson={walk.lesson}.1" in page.url, expected=True)
    if walk.typed:
        box = page.locator(".st-key-source").get_by_role("textbox")
        box.fill(walk.sentence)
        box.press("Enter")
        wait_for_idle(page)


def go_on(page, walk, n):
    entries = page.evaluate("history.length")
    page.locator(PANEL).get_by_role("link", name=walk.said(NEXT), exact=True).click()
    wait_for_idle(page)
    comes_to(page, lambda: f"lesson={walk.lesson}.{n}" in page.url, expected=True)
    assert page.evaluate("history.length") == min(entries + 1, MOST_ENTRIES)


def answer_and_look(page, walk, n, case, frames, since):
    """One step: nothing of the answer was sent since it began; then it is, and the panel and the page show it."""
    step = lessons()[walk.lesson].steps[n - 1]
    posed = pose(step, case)
    given = answer_of(posed, right=n % 2 == 1)
    posed = pose(step, Case(checkpoint=case.checkpoint, trace=case.trace, given=given))
    says(page, walk.said(posed.question))
    reveal = plain(walk.said(posed.reveal)).encode()
    rows = covered(walk.lesson, n, case, posed)
    assert reveal not in b"".join(frames[since:])
    assert not [row for row in rows if sent_of(frames[since:], row)], n
    answer(page, walk, posed, given)
    assert reveal in b"".join(frames)
    # What is looked for can be found, here or where the same chart was sent before: a browser keeps it.
    assert not rows or [row for row in rows if sent_of(frames, row)], n
    says(page, walk.said(posed.reveal))
    misled = posed.misled(given)
    assert posed.is_right(given) == (n % 2 == 1)
    says(page, walk.said(misled or posed.reveal))
    comes_to(page, lambda: all(in_sight(page, key) for key in step.look[:1]), expected=True)
    return posed


def place_of(page):
    """What the address says; the checkpoint's revision need not stand there."""
    return {name: value for name, value in parse_qsl(urlsplit(page.url).query) if name != "rev"}


def in_sight(page, key):
    """Whether a chart is there and begins within the window."""
    box = page.locator(f".st-key-{key}").first.bounding_box()
    return box is not None and 0 <= box["y"] <= page.viewport_size["height"] - 100


# What each step covers: tests/extensions/classroom/pages/test_covers.py and test_lesson_walks.py.
@pytest.mark.parametrize(
    ("walk", "most"),
    [(WALKS[-1], 3), *(pytest.param(walk, 99, marks=pytest.mark.deep) for walk in (WALKS[0], WALKS[-1]))],
    ids=str,
)
def test_a_lesson_is_walked_and_what_it_covers_is_not_sent(server, new_page, walk, most):
    checkpoint = load(SHIPPED / walk.model)
    case = Case(checkpoint=checkpoint, trace=checkpoint.run(walk.sentence))
    page = new_page()
    frames = told(page)
    begin(page, server, walk)
    since, steps = 0, len(lessons()[walk.lesson].steps)
    last = min(most, steps)
    for n in range(1, last + 1):
        posed = answer_and_look(page, walk, n, case, frames, since)
        if n == 2:
            kept = place_of(page)
            page.reload()
            wait_for_idle(page)
            comes_to(page, lambda kept=kept: place_of(page), kept)
            says(page, walk.said(posed.reveal))
        if n < last:
            since = len(frames)
            go_on(page, walk, n + 1)
    expect(page.locator(PANEL).get_by_role("link", name=walk.said(ALL))).to_have_count(int(last == steps))
    page.locator(PANEL).get_by_role("link", name=walk.said(BACK), exact=True).click()
    wait_for_idle(page)
    comes_to(page, lambda: f"lesson={walk.lesson}.{last - 1}" in page.url, expected=True)
    page.go_back()
    comes_to(page, lambda: f"lesson={walk.lesson}.{last}" in page.url, expected=True)
    wait_for_idle(page)
    says(page, walk.said(posed.reveal))


def test_the_panel_covers_nothing_and_answers_are_forgotten_on_request(server, page):
    turn_to(page, f"{server.url}/step?model=reverse&src=abcdef&lesson=one-piece.5&lang=en")
    panel, main = page.locator(PANEL), page.locator(".st-key-page_head")
    beside = panel.bounding_box()
    assert main.bounding_box()["x"] + main.bounding_box()["width"] <= beside["x"]
    commit(page, "0")
    stored = "() => localStorage.getItem('glassformer-lessons') ?? ''"
    comes_to(page, lambda: page.evaluate(stored).count("one-piece.5"), 1)
    assert "abcdef" not in page.evaluate(stored)
    page.set_viewport_size(PHONE)
    wait_for_idle(page)
    below = panel.bounding_box()
    assert below["y"] > PHONE["height"] / 2 - 1
    assert below["width"] <= PHONE["width"]
    panel.locator("summary").click()
    comes_to(page, lambda: panel.bounding_box()["height"] < 80, expected=True)
    page.set_viewport_size({"width": 1280, "height": 720})
    menu_link(page, "Lessons").click()
    wait_for_idle(page)
    expect(page.get_by_role("link", name=re.compile("Continue at step"))).to_have_count(1)
    page.get_by_role("button", name="Delete my answers").click()
    wait_for_idle(page)
    comes_to(page, lambda: page.evaluate(stored), "")
    expect(page.get_by_role("link", name=re.compile("Continue at step"))).to_have_count(0)
