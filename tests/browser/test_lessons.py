"""A lesson is walked from its opening to an answer and back; its panel covers nothing; answers stay in the browser.

What each step covers is in nothing that is sent before: `tests/extensions/classroom/pages/test_lesson_walks.py`.
"""

import re
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import expect

from glassformer.extensions.lessons.library import Case, lessons, pose
from glassformer.runs.loading import SHIPPED
from tests.browser.helpers import PHONE, comes_to, menu_link, open_page, turn_to, wait_for_idle
from tests.browser.lesson_walks import WALKS, answer_of
from transformer import load
from transformer.i18n import say

PANEL = ".st-key-lesson_panel"
BEGIN, BEGINS, ANSWER = say("Begin"), say("Go to the first question"), say("Answer")
NEXT, BACK = say("Next", about="lesson"), say("Back")
WALK = WALKS[-1]  # of masks, in Chinese, with a sentence that is typed at the first step


def says(page, text):
    """Wait until the panel says it, in whatever lines."""
    flat = "".join(WALK.said(text).split())
    comes_to(page, lambda: flat in "".join(page.locator(PANEL).inner_text().split()), expected=True)


def commit(page, choice, *, button="Answer"):
    """Answer, and wait for what comes."""
    panel = page.locator(PANEL)
    panel.locator("label").get_by_text(choice, exact=True).click()
    panel.get_by_role("button", name=button, exact=True).click()
    wait_for_idle(page)
    expect(panel.get_by_test_id("stAlert")).to_be_visible()


def follow(page, place, label, n):
    """Follow a link to a scene of the lesson."""
    place.get_by_role("link", name=WALK.said(label), exact=True).click()
    wait_for_idle(page)
    comes_to(page, lambda: f"lesson={WALK.lesson}.{n}" in page.url, expected=True)


def place_of(page):
    """What the address says; the checkpoint's revision need not stand there."""
    return {name: value for name, value in parse_qsl(urlsplit(page.url).query) if name != "rev"}


def in_sight(page, key):
    """Whether a chart is there and begins within the window."""
    box = page.locator(f".st-key-{key}").first.bounding_box()
    return box is not None and 0 <= box["y"] <= page.viewport_size["height"] - 100


def posed_and_answered(page, case, n):
    """Answer a question, right or wrong, and see what was asked shown."""
    step = lessons()[WALK.lesson].steps[n - 1]
    posed = pose(step, case)
    given = answer_of(posed, right=n % 2 == 1)
    says(page, posed.question)
    commit(page, WALK.said(posed.label(given)), button=WALK.said(ANSWER))
    says(page, posed.reveal)
    says(page, posed.misled(given) or posed.reveal)
    comes_to(page, lambda: all(in_sight(page, key) for key in step.look[:1]), expected=True)
    return posed


def test_a_lesson_is_walked_and_an_answer_outlives_a_reload_and_the_way_back(server, page):
    checkpoint = load(SHIPPED / WALK.model)
    case = Case(checkpoint=checkpoint, trace=checkpoint.run(WALK.sentence))
    open_page(page, f"{server.url}/lessons?lang={WALK.language}&model={WALK.model}")
    follow(page, page.locator(f".st-key-lesson_list_{WALK.lesson}"), BEGIN, 0)
    says(page, lessons()[WALK.lesson].opening.says.said({}))
    panel = page.locator(PANEL)
    follow(page, panel, BEGINS, 1)
    box = page.locator(".st-key-source").get_by_role("textbox")
    box.fill(WALK.sentence)
    box.press("Enter")
    wait_for_idle(page)
    posed_and_answered(page, case, 1)
    entries = page.evaluate("history.length")
    follow(page, panel, NEXT, 2)
    assert page.evaluate("history.length") == entries + 1
    posed, kept = posed_and_answered(page, case, 2), place_of(page)
    page.reload()
    wait_for_idle(page)
    comes_to(page, lambda: place_of(page), kept)
    says(page, posed.reveal)
    follow(page, panel, BACK, 1)
    page.go_back()
    comes_to(page, lambda: f"lesson={WALK.lesson}.2" in page.url, expected=True)
    wait_for_idle(page)
    says(page, posed.reveal)


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
