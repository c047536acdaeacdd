"""A lesson walked in a browser with an own sentence: what is covered is in nothing that the server sent."""

import base64
import re
import struct

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, open_page, screenshot, wait_for_idle
from transformer import load
from transformer.lessons import Case, lessons, pose
from ui.runs.loading import SHIPPED

SENTENCE = "我喜欢喝绿茶。"
PANEL = ".st-key-lesson_panel"


@pytest.fixture(scope="module")
def run():
    """The run that the app makes of the sentence, made here."""
    checkpoint = load(SHIPPED / "zh-en")
    return Case(checkpoint=checkpoint, trace=checkpoint.run(SENTENCE))


def told(page):
    """Everything that the server sends over its socket from now on."""
    frames = []

    def listen(socket):
        socket.on(
            "framereceived",
            lambda payload: frames.append(payload if isinstance(payload, bytes) else payload.encode()),
        )

    page.on("websocket", listen)
    return frames


def written(values):
    """Numbers as they could be sent: in text with some digits, and as bytes of each kind in base64."""
    texts = {f"{value:.8f}"[:7].encode() for value in values}  # the beginning of however many digits
    for kind in ("f", "d"):
        whole = base64.b64encode(struct.pack(f"<{len(values)}{kind}", *values))
        texts.add(whole[: len(whole) - 4])
    return texts


def commit(page, choice=None, text=None):
    """Answer, and wait for what comes."""
    panel = page.locator(PANEL)
    if choice is not None:
        panel.get_by_text(choice, exact=True).click()
    else:
        panel.get_by_role("textbox").fill(text)
    panel.get_by_role("button", name="Answer").click()
    wait_for_idle(page)
    expect(panel.get_by_text("You predicted")).to_be_visible()


def go_on(page, number):
    entries = page.evaluate("history.length")
    page.locator(PANEL).get_by_role("link", name="Next").click()
    wait_for_idle(page)
    comes_to(page, lambda: f"lesson=one-piece.{number}" in page.url, expected=True)
    assert page.evaluate("history.length") == entries + 1


def test_a_lesson_is_walked_and_what_it_covers_is_not_sent(server, new_page, run):
    page = new_page(fresh=True)
    frames = told(page)
    open_page(page, f"{server.url}/lessons?src={SENTENCE}")
    page.locator(".st-key-lesson_list_one-piece").get_by_role("link", name="Begin").click()
    wait_for_idle(page)
    comes_to(page, lambda: "guess=1" in page.url, expected=True)
    sent = b"".join(frames)
    assert run.trace.output_text.encode() not in sent  # all below the sentence is covered
    assert SENTENCE.encode() in sent
    commit(page, "nothing")
    expect(page.locator(PANEL)).to_contain_text("there would be no row to predict from")
    go_on(page, 2)
    commit(page, text="I")
    expect(page.locator(PANEL)).to_contain_text("and so it is")

    frames.clear()
    go_on(page, 3)
    expect(page.locator(PANEL)).to_contain_text("least sure")
    entropies = [float(one) for one in run.trace.entropies()]
    probabilities = [float(np.exp(run.trace.log_probs[t, i])) for t, i in enumerate(run.trace.tgt_ids)]
    before = b"".join(frames)
    assert b"stepper" in before
    for number in written(entropies) | written(probabilities):
        assert number not in before, number
    frames.clear()
    posed = pose(lessons()["one-piece"].steps[2], run)
    commit(page, posed.label(posed.answer.right))
    after = b"".join(frames)
    assert any(number in after for number in written(entropies))  # what is looked for can be found
    assert any(number in after for number in written(probabilities))
    screenshot(page, "lesson-told")

    go_on(page, 4)
    commit(page, "it stays the same")
    assert "forced=" in page.url
    page.reload()
    wait_for_idle(page)
    expect(page.locator(PANEL)).to_contain_text("You predicted “it stays the same”")
    go_on(page, 5)
    commit(page, "0")
    go_on(page, 6)
    commit(page, "the same")
    assert "how=beam" in page.url
    expect(page.locator(PANEL).get_by_role("link", name="All lessons")).to_be_visible()
    page.go_back()
    wait_for_idle(page)
    page.go_back()
    comes_to(page, lambda: "lesson=one-piece.5" in page.url, expected=True)
    wait_for_idle(page)
    expect(page.locator(PANEL)).to_contain_text("step back and forth ten times")


def test_the_panel_covers_nothing_beside_and_folds_below(server, page):
    open_page(page, f"{server.url}/step?model=reverse&src=abcdef&lesson=one-piece.5")
    panel, main = page.locator(PANEL), page.locator(".st-key-page_head")
    beside = panel.bounding_box()
    assert main.bounding_box()["x"] + main.bounding_box()["width"] <= beside["x"]
    page.set_viewport_size(PHONE)
    wait_for_idle(page)
    below = panel.bounding_box()
    assert below["y"] > PHONE["height"] / 2 - 1
    assert below["width"] <= PHONE["width"]
    panel.locator("summary").click()
    comes_to(page, lambda: panel.bounding_box()["height"] < 80, expected=True)


def test_answers_are_forgotten_by_the_browser_on_request(server, page):
    open_page(page, f"{server.url}/step?model=reverse&src=abcdef&lesson=one-piece.5")
    commit(page, "0")
    stored = "() => localStorage.getItem('glassformer-lessons') ?? ''"
    comes_to(page, lambda: page.evaluate(stored).count("one-piece.5"), 1)
    assert "abcdef" not in page.evaluate(stored)
    page.get_by_role("link", name="Lessons", exact=True).click()
    wait_for_idle(page)
    expect(page.get_by_role("link", name=re.compile("Go on"))).to_have_count(1)
    page.get_by_role("button", name="Forget my answers").click()
    wait_for_idle(page)
    comes_to(page, lambda: page.evaluate(stored), "")
    page.reload()
    wait_for_idle(page)
    expect(page.get_by_role("link", name=re.compile("Go on"))).to_have_count(0)
