"""What a notebook shows steps in its frames by itself, offline, several on a page, and complains of nothing."""

from html import escape

import pytest
from playwright.sync_api import expect

import transformer
from glassformer.extensions.saving import notebook
from tests.browser.test_saved_run import TITLES
from tests.source_code import ROOT


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A page with a picture, two runs beside each other, and one in a frame of another origin."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(notebook, "find_spec", lambda name: None)
        checkpoint = transformer.load(ROOT / "checkpoints" / "reverse")
        left, right = checkpoint.run("stone"), checkpoint.run("ice")
        shown = [left.show("step.candidates", step=1), transformer.compare(left, right, "step.candidates")]
        html = [one._repr_html_() for one in shown]
    apart = f'<iframe width="900" height="600" sandbox="allow-scripts" srcdoc="{escape(html[0])}"></iframe>'
    file = tmp_path_factory.mktemp("notebook") / "book.html"
    file.write_text(f"<!doctype html><meta charset=utf-8>{''.join(html)}{apart}", encoding="utf-8")
    return file


def test_runs_step_in_their_frames_without_a_network(new_page, book):
    page = new_page(visitor="offline")
    page.context.set_offline(True)
    said = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(book.as_uri())
    one, two = (page.frame_locator(f"div:nth-of-type({n}) > iframe") for n in (1, 2))
    expect(one.locator(TITLES)).to_have_text("Step 2: candidates for the next token")
    one.locator(".gf-next").click()
    expect(one.locator(TITLES)).to_have_text("Step 3: candidates for the next token")
    expect(two.locator(TITLES)).to_have_text(["Step 1: candidates for the next token"] * 2)
    # One stepper moves both; the shorter run stays at its end.
    two.locator(".gf-last").first.click()
    expect(two.locator(TITLES)).to_have_text([f"Step {n}: candidates for the next token" for n in (6, 4)])
    two.locator(".gf-back").last.click()
    expect(two.locator(TITLES)).to_have_text(["Step 3: candidates for the next token"] * 2)
    # A frame is no taller than what it shows; what stands there for no scripts is folded.
    for frame in page.locator("div > iframe").all():
        tall = frame.evaluate("(one) => [one.offsetHeight, one.contentDocument.documentElement.scrollHeight]")
        assert tall[0] == min(tall[1], notebook.FRAME_PIXELS)
    assert page.locator("details[open]").count() == 0
    page.locator("body > iframe").scroll_into_view_if_needed()  # unseen, a frame of another origin may not draw
    apart = page.frame_locator("body > iframe")
    expect(apart.frame_locator("iframe").locator(TITLES)).to_have_text("Step 2: candidates for the next token")
    assert said == []
