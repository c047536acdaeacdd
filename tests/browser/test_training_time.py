"""The slider over the training of a checkpoint in a real browser: mouse, keys, history, a fresh server, a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, comes_to, open_page, screenshot, wait_for_idle
from tests.browser.story import address, expect_address, output, source_box, wait_for_charts
from tests.transformer.grown import STEPS, write_grown
from tools.serve import serve

SIDE = ".st-key-training_time .gf-moments"
PAGE = ".st-key-training_time_page .gf-moments"
HERE = "?model=grown%40219&src=abcdef&step=3&layer=2&head=1"
CHECKPOINT = "Grown letters (grown)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_grown(tmp_path_factory.mktemp("grown"))


@pytest.fixture(scope="module")
def grown(folder, tmp_path_factory):
    """A server of a folder with a checkpoint and five snapshots of it."""
    log = tmp_path_factory.mktemp("grown_server") / "app.log"
    with serve(log=log, arguments=["--checkpoints", str(folder)]) as running:
        yield running


def moment(page, place=SIDE):
    return page.locator(f"{place} .gf-moment").inner_text()


def stands_at(page, step):
    """The slider, the address and the run are those of a snapshot, and all else is as it was."""
    wanted = {"model": f"grown@{step}" if step is not None else "grown", "src": "abcdef", "layer": "2", "head": "1"}
    expect_address(page, **wanted)
    name = f"Step {step:,}" if step is not None else "The checkpoint itself"
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text(name)
    wait_for_idle(page)
    expect(page.get_by_role("combobox", name="Checkpoint")).to_have_value(CHECKPOINT)
    expect(source_box(page)).to_have_value("abcdef")


def entries(page):
    return page.evaluate("history.length")


def test_keys_move_through_the_training_and_each_rest_is_one_entry(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/attention{HERE}")
    wait_for_charts(page)
    slider, before = page.locator(f"{SIDE} .gf-slider"), entries(page)
    slider.focus()
    for n, (key, step) in enumerate([("ArrowRight", 1200), ("Home", 0), ("End", None), ("ArrowLeft", 2208)]):
        slider.press(key)
        stands_at(page, step)
        comes_to(page, lambda: entries(page), before + n + 1)
    assert page.locator(".gf-stepper").get_attribute("data-step") == "2"
    for step in (None, 0, 1200, 219):
        page.go_back()
        stands_at(page, step)
    page.go_forward()
    stands_at(page, 1200)
    page.reload()
    stands_at(page, 1200)
    expect_address(page, step="3")


def test_the_mouse_drags_it_and_only_the_rest_is_drawn(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/step{HERE}")
    slider, before = page.locator(f"{SIDE} .gf-slider"), entries(page)
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 2, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 2, middle, steps=12)
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text("The checkpoint itself")
    page.mouse.up()
    stands_at(page, None)
    assert entries(page) <= before + 2  # where it was held down, and where it rests
    comes_to(page, lambda: page.locator(".gf-target .gf-chip").count(), 8)


def test_the_training_is_played_to_its_end_with_one_entry_at_most_for_all(grown, new_page):
    page = new_page(fresh=True)
    open_page(page, f"{grown.url}/attention{HERE.replace('219', '0')}")
    wait_for_charts(page)
    before, seen = entries(page), []
    page.locator(f"{SIDE} .gf-play").click()
    while not seen or "itself" not in seen[-1]:
        name = page.locator(f"{SIDE} .gf-moment").inner_text()
        seen += [] if seen and seen[-1] == name else [name]
        page.wait_for_timeout(50)
    assert [re.sub(r"\D*([\d,]+).*", r"\1", name) for name in seen[1:-1]] == ["10", "219", "1,200", "2,208"]
    stands_at(page, None)
    assert entries(page) == before + 1
    page.go_back()
    stands_at(page, 0)
    page.locator(f"{SIDE} .gf-play").click()
    expect(page.locator(f"{SIDE} .gf-moment")).to_contain_text("Step 10 ")
    page.locator(f"{SIDE} .gf-play").click()
    comes_to(page, lambda: address(page)["model"] in {"grown@10", "grown@219"}, True)


def test_an_address_opens_on_a_fresh_server(folder, tmp_path, page):
    with serve(log=tmp_path / "app.log", arguments=["--checkpoints", str(folder)]) as fresh:
        open_page(page, f"{fresh.url}/attention{HERE}")
        stands_at(page, 219)
        wait_for_charts(page)
        assert page.locator(".gf-stepper").get_attribute("data-step") == "2"


def test_a_phone_and_a_presentation_have_it_in_the_page(grown, new_page):
    page = new_page(viewport=PHONE, color_scheme="dark")
    open_page(page, f"{grown.url}/attention{HERE}")
    slider = page.locator(f"{PAGE} .gf-slider")
    expect(slider).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    for place in (slider, *page.locator(f"{PAGE} .gf-button").all()):
        box = place.bounding_box()
        assert 0 <= box["x"] <= PHONE["width"] - box["width"]
    screenshot(page, "training-time-phone")
    slider.press("ArrowRight")
    expect_address(page, model="grown@1200", src="abcdef", step="3")
    expect(page.locator(f"{PAGE} .gf-moment")).to_contain_text("Step 1,200")
    wait_for_idle(page)
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(slider).to_be_hidden()
    assert moment(page) == moment(page, PAGE)
    page.keyboard.press("p")
    expect(slider).to_be_visible()
    slider.press("End")
    expect_address(page, model="grown")


def test_two_snapshots_are_compared_and_each_side_has_its_slider(grown, page):
    open_page(page, f"{grown.url}/compare?model=grown&src=abcdef&b=model%3Dgrown%40219")
    other = page.locator(".st-key-b-training_time .gf-moments")
    expect(other.locator(".gf-moment")).to_contain_text("Step 219")
    expect(page.get_by_text("Right: grown\u2060@219")).to_be_visible()
    other.locator(".gf-slider").press("ArrowRight")
    expect_address(page, model="grown", b="model=grown@1200")
    wait_for_idle(page)
    page.locator(f"{SIDE} .gf-slider").press("Home")
    expect_address(page, model="grown@0", b="model=grown@1200")
    expect(page.get_by_text("Left: grown\u2060@0")).to_be_visible()
    wait_for_idle(page)
    expect(other.locator(".gf-moment")).to_contain_text("Step 1,200")
    page.go_back()
    expect(page.get_by_text("Left: grown", exact=True)).to_be_visible()
    assert output(page)


def test_it_stands_beside_the_name_and_leaves_the_menu_in_sight(grown, page):
    for language in ("en", "zh"):
        open_page(page, f"{grown.url}/step{HERE}&lang={language}")
        box, menu = page.locator(SIDE).bounding_box(), page.locator(".st-key-menu").bounding_box()
        name = page.locator(".st-key-model").bounding_box()
        assert name["y"] + name["height"] <= box["y"] + 2 < box["y"] + box["height"] <= menu["y"] + 2
        assert (box["x"], box["width"]) == (name["x"], name["width"])
        assert box["height"] < 90
        assert menu["y"] + menu["height"] < 720
        screenshot(page, f"training-time-{language}")
    assert len(STEPS) + 1 == int(page.locator(f"{SIDE} .gf-slider").get_attribute("max")) + 1
