"""A saved run opens as a file of its own, offline, steps as its pages do, and no text of it is ever markup."""

import re

import pytest
from playwright.sync_api import expect

from glassformer.extensions.saving.saved_run import saved_run
from glassformer.runs.loading import SHIPPED, runner
from glassformer.runs.open_run import seen
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state.link import Link
from tests.browser.helpers import PHONE, open_page, saved, turn_to
from tests.browser.idle import wait_for_rest
from tests.browser.story import wait_for_charts
from tests.extensions.saving.hostile_run import TEXTS, hostile
from transformer.checkpoint.load import load

TITLES = ".gf-plot .gtitle"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved run")


def save(tab, folder, which="this page"):
    """The file that the page saves as it stands."""
    tab.get_by_role("button", name="Save this run").click()
    with tab.expect_download() as coming:
        tab.get_by_role("button", name=f"Pictures of {which}").click()
    tab.keyboard.press("Escape")
    file = folder / coming.value.suggested_filename
    coming.value.save_as(file)
    return file


def live(page):
    """Where the link leads."""
    return page.get_by_role("link", name="Open this run in Glassformer").get_attribute("href")


def test_it_opens_at_the_readers_step_and_follows_in_both_languages_and_themes(server, new_page, folder, offline):
    tab = new_page()
    open_page(
        tab, f"{server.url}/step?model=zh-en&src=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E我喜欢喝绿茶。&layer=2&head=1"
    )
    wait_for_charts(tab)
    tab.keyboard.press("ArrowRight")
    expect(tab).to_have_url(re.compile("step=2"))
    wait_for_rest(tab)
    page, said = offline(save(tab, folder).rename(folder / "elsewhere.html"), viewport=PHONE)
    expect(page.locator(TITLES).first).to_be_attached()
    assert "<img src=x onerror=alert(1)>" in page.locator("h1").inner_text()
    assert page.locator("img").count() == 0
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    for n in (2, 3):
        for one in (page, tab):
            expect(one.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next token")
        for place, key in ((0, "candidates"), (2, "cross_map")):  # between them the picture of another block
            of_file, of_page = page.locator(".gf-chart-frame").nth(place), tab.locator(f".st-key-{key}")
            assert saved(page, of_file, "CSV")[0] == saved(tab, of_page, "CSV")[0]
        for one in (page, tab):
            one.keyboard.press("ArrowRight")
    page.get_by_role("button", name="中文").click()
    expect(page.locator(TITLES).first).to_have_text("第 4 步：下一个词元的候选")
    page.locator(".gf-saved-theme").click()
    expect(page.locator(".gf-chart-frame").first).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="English").click()
    assert live(page).startswith(f"{server.url}/step?model=zh-en")
    assert "step=4" in live(page)
    page.keyboard.press("Home")
    expect(page.locator(TITLES).first).to_have_text("Step 1: candidates for the next token")
    assert "step=" not in live(page)
    assert said == []


def test_its_pages_are_led_to_each_steps_and_hostile_texts_do_nothing(server, new_page, folder, offline):
    tab = new_page()
    turn_to(tab, f"{server.url}/attention?model=reverse&src=stone&panel=flow&layer=1&follow=1")
    expect(tab.locator(".gf-flow")).to_be_visible()
    page, said = offline(save(tab, folder, "all pages"))
    links = page.locator(".gf-saved-pages a")
    expect(page.locator(TITLES).first).to_be_attached()
    for number in range(links.count()):
        links.nth(number).click()
        expect(links.nth(number)).to_have_attribute("aria-current", "true")
        expect(page.locator(".gf-plot .main-svg, .gf-flow-canvas").first).to_be_attached()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".gf-saved-stepper")).to_contain_text(f"Step {min(number, 4) + 2} of 6")
        assert f"/{links.nth(number).get_attribute('href')[1:]}?" in live(page)
    page.go_back()
    expect(links.last).to_have_attribute("aria-current", "false")
    assert said == []
    hostile_texts_do_nothing(folder, offline)


NAMES = '() => Array.from(document.querySelectorAll("*"), ({ localName }) => localName)'


def hostile_texts_do_nothing(folder, offline):
    declare_all()
    model = load(SHIPPED / "zh-en")
    link = Link(model="zh-en", source="我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好。")
    run, _ = seen(model, link, runner().trace(model, link.query(model.content_hash)))
    names, short = [], [text for text in TEXTS if len(text) < 100]
    assert len(run.trace.src_tokens) + run.trace.n_steps >= len(short)
    for which, texts in (("harmless", ["harmless"]), ("hostile", short)):
        kept, _ = hostile(run, PAGES["step"], *texts)
        file = folder / f"{which}.html"
        file.write_bytes(saved_run(kept))
        page, said = offline(file)
        page.on("dialog", lambda dialog, said=said: said.append(dialog.message))
        expect(page.locator(TITLES).first).to_be_attached()
        for key in ("ArrowRight", "End", "Home"):
            page.keyboard.press(key)
        page.get_by_role("button", name="中文").click()
        expect(page.locator(TITLES).first).to_contain_text("第 1 步")
        page.mouse.move(300, 400)
        names.append(set(page.evaluate(NAMES)))
        assert page.evaluate("() => document.scripts.length") == 0
        assert said == []
    assert names[0] == names[1]
