"""A training that a visitor starts is watched, looked at on other pages meanwhile, and taken home."""

import io
import re
import zipfile
from itertools import product

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import menu_link, open_page
from tests.browser.idle import wait_for_idle
from tests.browser.paced import Paced
from tests.browser.test_room import BAR, opened, others_vote, students_of
from tests.glassformer.waiting import WAIT

SLIDER = ".st-key-training_time"
TRAINED = 1000 * WAIT  # a training is the last to get a processor
PAIRS = "\n".join(f"{a}{b}{c} => {c}{b}{a}" for a, b, c in product("abc", repeat=3))


def start(page, url):
    """Begin a training of a few seconds."""
    open_page(page, url)
    page.get_by_text("Or choose the settings yourself").click()
    page.get_by_role("radio", name="My own pairs").or_(page.get_by_role("button", name="My own pairs")).click()
    box = page.get_by_role("textbox", name="Pairs, one per line")
    box.fill(PAIRS)
    box.press("Control+Enter")
    page.get_by_role("slider", name="Epochs").focus()
    page.keyboard.press("End")
    expect(page.get_by_text(re.compile(r"The model will have [\d,]+"))).to_be_visible()
    wait_for_idle(page)
    page.get_by_role("button", name="Start training").click()


@pytest.fixture
def paced(server):
    with Paced(server) as found:
        yield found


def test_it_is_watched_here_and_on_other_pages_and_taken_home(new_page, server, paced):
    page, paced.may = new_page(), 4
    start(page, f"{server.url}/training?training=watch")
    # As soon as it has a model that is the one in the sidebar, with a slider.
    page.wait_for_url(re.compile("model=training%3A"), timeout=TRAINED)
    expect(page.locator(SLIDER)).to_contain_text("The checkpoint itself")
    expect(page.locator(".st-key-training_growing .main-svg").first).to_be_visible()
    expect(page.get_by_text(re.compile(r"\d+ snapshots so far"))).to_be_visible(timeout=TRAINED)
    # Meanwhile another page follows: the slider gets more stops by itself.
    menu_link(page, "Attention").click()
    page.wait_for_url("**/attention?**")
    expect(page.locator(SLIDER)).to_contain_text("The checkpoint itself")
    slider = page.locator(SLIDER).get_by_role("slider")
    before = slider.get_attribute("max") or ""
    paced.may = 24
    expect(slider).not_to_have_attribute("max", before, timeout=TRAINED)
    paced.may = float("inf")
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_url(re.compile(r"model=training%3A[\w-]+%400(&|$)"))
    wait_for_idle(page)
    menu_link(page, "Watch it learn").click()
    expect(page.get_by_text("The training is done.")).to_be_visible(timeout=TRAINED)
    wait_for_idle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the checkpoint (zip)").click()
    with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as archive:
        names = archive.namelist()
        assert "my-model/model.safetensors" in names
        assert sum(name.startswith("my-model.snapshots/") for name in names) == 24
        assert "--snapshots 24" in archive.read("commands.txt").decode()


@pytest.mark.deep
def test_a_class_follows_a_training_and_predicts_its_loss(new_page, server):
    teacher, code = opened(new_page, server)
    visitors = ({"visitor": name} for name in ("first", "second", "third"))
    students = students_of(new_page, server, teacher, code, *visitors)
    open_page(teacher, f"{server.url}/training?training=watch&room={code}")
    teacher.get_by_text("Or choose the settings yourself").click()
    teacher.get_by_role("button", name="Start training").click()
    teacher.wait_for_url(re.compile("model=training%3A"))
    for student in students:
        student.wait_for_url(re.compile(r"/training\?.*model=training%3A"))
        expect(student.locator(".st-key-training_growing .main-svg").first).to_be_visible()
        expect(student.get_by_role("button", name="Stop the training")).to_have_count(0)
    teacher.get_by_role("button", name="Ask the class what the loss will do").click()
    for student, letter in zip(students, "AAB", strict=True):
        expect(student.get_by_text(re.compile("^The dev loss is .* now"))).to_be_visible()
        expect(student.get_by_text(re.compile("^A. below"))).to_be_visible()
        student.get_by_role("button", name=f"Vote for {letter}").click()
        expect(student.locator(f"{BAR} + span")).to_have_text("Your vote is in.")
    others_vote(server.port, code, round_=1, choices=[2, 2])
    # The training answers: here as it is over before the minute is.
    teacher.get_by_role("button", name="Stop the training").click()
    for page in (teacher, *students):
        chart = page.locator(".st-key-room_votes .js-plotly-plot")
        expect(chart).to_be_visible()
        assert chart.evaluate("chart => chart._fullData.map(bars => [...bars.x])") == [[2, 1, 2]]
        assert chart.evaluate("chart => chart.layout.yaxis.ticktext.join()").count("✓") == 1
