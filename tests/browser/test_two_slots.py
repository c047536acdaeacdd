"""Two runs beside each other in a real browser: one is stepped through, and the other stays."""

import os
import re
import shutil

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import comes_to, open_page, put_scripts, wait_for_idle
from tests.browser.story import wait_for_charts
from tools.serve import ROOT, serve

# The rows that a map's marks of the current step stand on.
_MARKED = """plot => plot._fullLayout.shapes.map(shape => shape.y0 ?? shape.yanchor)"""


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory):
    """A server of a page with two slots."""
    folder = tmp_path_factory.mktemp("two slots")
    shutil.copy(ROOT / "tests" / "pages" / "two_slots_app.py", folder / "app.py")
    put_scripts(folder / "static")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with serve(folder / "app.py", log=folder / "app.log", environment={"PYTHONPATH": path}) as running:
        yield running


@pytest.fixture
def stage(two_slots, new_page):
    """The page, opened on "glasses"."""
    page = new_page(viewport={"width": 1600, "height": 900})
    open_page(page, f"{two_slots.url}/?model=reverse&src=glasses&panel=head")
    wait_for_charts(page)
    return page


def marked(page, key):
    return page.locator(f".st-key-{key} .js-plotly-plot").evaluate(_MARKED)


def test_both_slots_are_laid_out_alike_and_a_step_of_one_leaves_the_other(stage):
    areas = [
        [
            stage.locator(f".st-key-{slot}{name}").evaluate("element => getComputedStyle(element).gridArea")
            for name in ("candidates", "force_choice_place", "entropy", "cross_map", "cross_row")
        ]
        for slot in ("", "b-")
    ]
    assert areas[0] == areas[1]
    assert areas[0][0].startswith("candidates")
    first, second = stage.locator(".st-key-stepper .gf-stepper"), stage.locator(".st-key-b-stepper .gf-stepper")
    before = marked(stage, "cross_map")
    assert before == marked(stage, "b-cross_map")
    second.get_by_role("button", name="Next").click()
    expect(second).to_have_attribute("data-step", "1")
    expect(stage.locator(".st-key-b-candidates")).to_contain_text("Step 2:")
    wait_for_idle(stage)
    expect(first).to_have_attribute("data-step", "0")
    expect(stage.locator(".st-key-candidates")).to_contain_text("Step 1:")
    assert marked(stage, "cross_map") == before
    comes_to(stage, lambda: marked(stage, "b-cross_map") != before, expected=True)
    first.get_by_role("button", name="Next").click()
    first.get_by_role("button", name="Next").click()
    expect(stage.locator(".st-key-candidates")).to_contain_text("Step 3:")
    expect(stage.locator(".st-key-b-candidates")).to_contain_text("Step 2:")
    wait_for_idle(stage)
    expect(stage).to_have_url(re.compile("step=3"))
