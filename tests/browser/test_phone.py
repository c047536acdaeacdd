"""On a telephone the first picture is near the top, controls stay at the foot, and nothing is out of reach."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import GROUND, PHONE, menu_link, turn_to
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN, click_candidate

PICTURES = {  # of each part the first picture, and how far down it may begin
    "step?": (".st-key-cross_map .gf-chart", 480),
    "attention?panel=overview": (".st-key-overview_cross .gf-chart", 300),
    "attention?panel=walk&layer=2": (".st-key-walk_map .gf-chart", 300),
    "attention?panel=table": (".st-key-head_table_map .gf-chart", 300),
    "inside?inside=lens": (".st-key-lens_table .gf-chart", 300),
    "matters?": (".gf-chart", 330),
}
SOME = ("attention?panel=walk&layer=2", "matters?")
TOPS = "all => all.map(one => one.offsetTop)"
FOLDED = ("translate", "what_if", "example_menu")


def top_of(page: Page, chart: str) -> float:
    expect(page.locator(f"{chart} .main-svg").first).to_be_visible(timeout=60_000)
    wait_for_rest(page)
    box = page.locator(chart).first.bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.parametrize(
    "places",
    [pytest.param(SOME, id="some"), *(pytest.param((place,), marks=pytest.mark.deep, id=place) for place in PICTURES)],
)
def test_the_first_picture_is_near_the_top(server, phone, places):
    for place in places:
        turn_to(phone, f"{server.url}/{place}&model=zh-en&src={FIFTEEN}&step=5")
        chart, most = PICTURES[place]
        assert top_of(phone, chart) <= most
        bar = phone.locator(".st-key-controls_bar")
        if bar.count():
            assert bar.bounding_box()["height"] <= 44  # one row, which slides
            last = bar.locator(":scope > *").last
            last.scroll_into_view_if_needed()
            box = last.bounding_box()
            assert 0 <= box["x"] <= PHONE["width"] - box["width"]
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_head_unfolds_the_controls_stay_and_menus_are_whole(server, new_page):
    page = new_page(viewport=PHONE)
    turn_to(page, f"{server.url}/step?model=zh-en&src={FIFTEEN}&step=5")
    begins = top_of(page, ".st-key-cross_map .gf-chart")
    head = page.locator(".st-key-page_head")
    assert head.bounding_box()["height"] <= 49
    for key in FOLDED:
        expect(page.locator(f".st-key-{key}")).to_be_hidden()
    more = head.locator("summary")
    right = more.evaluate("one => one.getBoundingClientRect().right")
    for where, edge in ((".st-key-page_head .stHtml:has(summary)", "right"), ("[data-testid='stMainMenu']", "left")):
        assert right <= page.locator(where).first.evaluate(f"one => one.getBoundingClientRect().{edge}")
    controls = page.locator(".gf-stepper .gf-controls")
    place = controls.bounding_box()
    assert place["y"] + place["height"] == pytest.approx(PHONE["height"], abs=1)
    assert place["height"] <= 56
    for key in ("End", "Home"):
        page.locator(".gf-stepper").press(key)
        for row in (".gf-source .gf-pieces", ".gf-target .gf-pieces"):
            assert len(set(page.locator(f"{row} .gf-chip").evaluate_all(TOPS))) == 1
        now = page.locator(".gf-target .gf-now").bounding_box()
        assert 0 <= now["x"] <= PHONE["width"] - now["width"]
    side = page.locator(".gf-source")
    side.get_by_role("button", name="Show all 15").click()
    assert len(set(side.locator(".gf-chip").evaluate_all(TOPS))) > 1
    assert side.locator(".gf-pieces").evaluate("one => one.scrollWidth - one.clientWidth") <= 2
    side.get_by_role("button", name="Show fewer").click()

    click_candidate(page, 1)
    expect(page.locator(".gf-stepper .gf-caption")).to_contain_text("you chose")
    expect(page.locator(".st-key-branch_choice")).to_contain_text("Model's own choice")
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    wait_for_rest(page)
    assert top_of(page, ".st-key-cross_map .gf-chart") == pytest.approx(begins, abs=8)
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    wait_for_rest(page)
    assert controls.bounding_box() == place
    last = page.get_by_test_id("stMainBlockContainer").evaluate(
        "main => Math.max(...[...main.querySelectorAll('.gf-chart')].map(one => one.getBoundingClientRect().bottom))"
    )
    assert last <= place["y"]  # nothing of the page ends under them
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 0)")
    more.click()
    for key in FOLDED:
        expect(page.locator(f".st-key-{key}")).to_be_visible()
    menus_and_corners_are_whole_and_in_a_lesson_controls_are_beside_them(server, page)


# What of the stepper lies under the two buttons in the corners of the page.
COVERED = """stepper => {
  const buttons = [...document.querySelectorAll("[data-testid=stHeader] button")];
  const corners = buttons.map(one => one.getBoundingClientRect());
  return [...stepper.querySelectorAll("button, select")].filter(one => {
    const box = one.getBoundingClientRect();
    return corners.some(corner => corner.width && box.left < corner.right && corner.left < box.right
      && box.top < corner.bottom && corner.top < box.bottom);
  }).map(one => one.ariaLabel);
}"""


def menus_and_corners_are_whole_and_in_a_lesson_controls_are_beside_them(server, page):
    turn_to(page, f"{server.url}/step?lesson=one-piece.3&model=en-fr&lang=en")
    top_of(page, ".st-key-candidates .gf-chart")
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 900)")
    wait_for_rest(page)
    assert page.locator(".gf-stepper .gf-controls").bounding_box()["y"] < 60  # beside them
    assert page.locator(".gf-stepper").evaluate(COVERED) == []
    for scheme, ground in GROUND.items():
        page.emulate_media(color_scheme=scheme)
        for part in ("stApp", "stExpandSidebarButton", "stMainMenu"):
            expect(page.get_by_test_id(part)).to_have_css("background-color", ground)
    turn_to(page, f"{server.url}/wrong?model=en-fr&mistake=inverted&lesson=")
    menu = page.locator("[class*=controls_bar] [data-testid=stSelectbox]").first.bounding_box()
    assert menu["x"] + menu["width"] <= 0.85 * PHONE["width"]
    page.get_by_test_id("stExpandSidebarButton").click()
    link = menu_link(page, "Masks")
    expect(link).to_be_in_viewport()
    wait_for_rest(page)  # the menu is drawn again at the end of a page's run
    assert link.bounding_box()["height"] >= 26  # for a finger
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Masks")
