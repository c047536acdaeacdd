"""What a notebook shows steps in its frames by itself, offline, and a handout and maps draw their charts there."""

from html import escape

import numpy as np
import pytest
from playwright.sync_api import expect

import transformer
from glassformer.extensions.classroom.handout import written
from glassformer.extensions.lessons.library import lessons
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


def test_runs_step_in_their_frames_without_a_network(offline, book):
    page, said = offline(book)
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


def test_a_handout_and_maps_draw_their_charts_without_a_network(offline, tmp_path):
    checkpoint = transformer.load(ROOT / "checkpoints" / "reverse")
    paper = written(lessons()["masks"], checkpoint, "noon", "en", app="http://localhost", answers=True)
    maps = transformer.given_maps(encoder=np.full((1, 2, 3, 3), 1 / 3), source=["a", "<b>", "c"])
    for name, content in (("paper", paper), ("maps", maps._repr_html_().encode())):
        file = tmp_path / f"{name}.html"
        file.write_bytes(b"<!doctype html><meta charset=utf-8>" * (name == "maps") + content)
        page, said = offline(file)
        one = page if name == "paper" else page.frame_locator("iframe")
        n_charts = content.count(b'class="chart"') + content.count(b"class=&quot;chart&quot;")
        assert n_charts
        expect(one.locator(".chart .main-svg .gtitle")).to_have_count(n_charts)
        assert len(content) < 1_000_000
        assert said == []
