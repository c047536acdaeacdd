"""A run that was saved as a file: opened by itself, without a network, it steps as the page does; text is text."""

import re

import pytest
from playwright.sync_api import expect

from glassformer.extensions.saving.saved_run import saved_run
from glassformer.runs.loading import SHIPPED, runner
from glassformer.runs.open_run import seen
from glassformer.runs.picture import PAGES, declare_all
from glassformer.state.link import Link
from tests.browser.helpers import PHONE, chart_menu, turn_to
from tests.browser.idle import wait_for_rest
from tests.browser.story import wait_for_charts
from tests.extensions.saving.hostile_run import TEXTS, hostile
from transformer.checkpoint.load import load

TITLES = ".gf-plot .gtitle"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved run")


@pytest.fixture
def offline(new_page):
    """A window of another visitor, without a network; what it complained of is in its list."""

    def one(path, **look):
        page = new_page(visitor="offline", **look)
        page.context.set_offline(True)
        said = []
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.goto(path.as_uri())
        expect(page.locator(TITLES).first).to_be_attached()
        return page, said

    return one


def saved(tab, server, folder, address):
    """The file that a page saves."""
    turn_to(tab, server.url + address)
    return save(tab, folder)


def save(tab, folder, which="this page"):
    """The file that the page saves as it stands."""
    tab.get_by_role("button", name="Save this run").click()
    with tab.expect_download() as coming:
        tab.get_by_role("button", name=f"Pictures of {which}").click()
    tab.keyboard.press("Escape")
    file = folder / coming.value.suggested_filename
    coming.value.save_as(file)
    return file


def test_it_opens_and_steps_without_a_network_in_both_languages_and_themes(server, tab, folder, offline):
    file = saved(tab, server, folder, "/step?model=reverse&src=stone&step=2")
    assert file.name == "reverse_stone_step.html"
    moved = file.rename(folder / "elsewhere.html")
    page, said = offline(moved, viewport=PHONE)
    expect(page.locator(TITLES).first).to_have_text("Step 2: candidates for the next piece")
    for n in (3, 4):
        page.keyboard.press("ArrowRight")
        expect(page.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
    assert page.locator(".gf-text").inner_text() == "enot"
    assert page.evaluate("() => document.documentElement.scrollWidth") <= PHONE["width"]
    page.get_by_role("button", name="中文").click()
    expect(page.locator(TITLES).first).to_have_text("第 4 步：下一个子词的候选")
    page.locator(".gf-saved-theme").click()
    expect(page.locator(".gf-chart-frame").first).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="English").click()
    assert live(page).startswith(f"{server.url}/step?model=reverse")
    assert "src=stone&step=4" in live(page)
    page.keyboard.press("Home")
    expect(page.locator(TITLES).first).to_have_text("Step 1: candidates for the next piece")
    assert "step=" not in live(page)
    assert said == []


def live(page):
    """Where the link leads."""
    return page.get_by_role("link", name="Open this run in Glassformer").get_attribute("href")


def table(page, chart):
    """The bytes of the CSV that a chart's menu saves."""
    with page.expect_download() as coming:
        chart_menu(chart, "CSV")
    return coming.value.path().read_bytes()


def test_it_opens_at_the_step_of_the_reader_and_saves_the_tables_that_the_app_saves(server, tab, folder, offline):
    turn_to(tab, f"{server.url}/step?model=zh-en&layer=2&head=1")
    wait_for_charts(tab)
    tab.keyboard.press("ArrowRight")
    wait_for_rest(tab)
    expect(tab).to_have_url(re.compile("step=2"))
    page, said = offline(save(tab, folder))
    for n in (2, 3):
        for place, key in enumerate(("candidates", "entropy", "cross_row", "cross_map")):
            expect(page.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
            expect(tab.locator(TITLES).first).to_have_text(f"Step {n}: candidates for the next piece")
            chart = page.locator(".gf-chart-frame").nth(place)
            assert table(page, chart) == table(tab, tab.locator(f".st-key-{key}"))
        for one in (page, tab):
            one.keyboard.press("ArrowRight")
    assert said == []


def test_its_pages_are_led_to_and_each_steps(server, tab, folder, offline):
    turn_to(tab, f"{server.url}/step?model=reverse&src=stone")
    wait_for_charts(tab)
    page, said = offline(save(tab, folder, "all pages"))
    links = page.locator(".gf-saved-pages a")
    assert links.first.get_attribute("aria-current") == "true"
    for number in range(1, links.count()):
        links.nth(number).click()
        expect(links.nth(number)).to_have_attribute("aria-current", "true")
        expect(page.locator(".gf-plot .main-svg").first).to_be_attached()
        page.keyboard.press("ArrowRight")
        expect(page.locator(".gf-saved-stepper")).to_contain_text(f"Step {min(number, 5) + 1} of 6")
        assert f"/{links.nth(number).get_attribute('href')[1:]}?" in live(page)
    page.go_back()
    expect(links.last).to_have_attribute("aria-current", "false")
    assert said == []


def test_its_flow_view_follows_the_step(server, tab, folder, offline):
    file = saved(tab, server, folder, "/attention?model=reverse&src=stone&panel=flow&layer=1&follow=1")
    page, said = offline(file)
    flow = page.locator(".gf-flow")
    for n in (1, 2):
        expect(flow).to_have_attribute("data-pinned", f"query {n - 1}")
        page.keyboard.press("ArrowRight")
    flow.locator(".gf-menu-button").click()
    expect(flow.get_by_role("menuitem", name="CSV")).to_have_count(0)  # it has rounded weights only
    assert said == []


NAMES = '() => Array.from(document.querySelectorAll("*"), ({ localName }) => localName)'


def test_hostile_texts_do_nothing(folder, offline):
    declare_all()
    model = load(SHIPPED / "zh-en")
    link = Link(model="zh-en", source="我喜欢喝绿茶，但是他喜欢喝咖啡，我们都喜欢吃苹果，因为今天天气很好。")
    run, _ = seen(model, link, runner().trace(model, link.query(model.content_hash)))
    names, short = [], [text for text in TEXTS if len(text) < 100]
    assert len(run.trace.src_pieces) + run.trace.n_steps >= len(short)
    for which, texts in (("harmless", ["harmless"]), ("hostile", short)):
        kept, _ = hostile(run, PAGES["step"], *texts)
        file = folder / f"{which}.html"
        file.write_bytes(saved_run(kept))
        page, said = offline(file)
        page.on("dialog", lambda dialog, said=said: said.append(dialog.message))
        for key in ("ArrowRight", "End", "Home"):
            page.keyboard.press(key)
        page.get_by_role("button", name="中文").click()
        expect(page.locator(TITLES).first).to_contain_text("第 1 步")
        page.mouse.move(300, 400)
        names.append(set(page.evaluate(NAMES)))
        assert page.evaluate("() => document.scripts.length") == 0
        assert said == []
    assert names[0] == names[1]


def test_what_a_file_says_is_never_markup(server, tab, folder, offline):
    file = saved(tab, server, folder, "/step?model=zh-en&src=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E%E6%88%91")
    page, said = offline(file)
    assert "<img src=x onerror=alert(1)>我" in page.locator("h1").inner_text()
    assert page.locator("img").count() == 0
    assert said == []
