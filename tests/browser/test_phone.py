"""A page as a telephone shows it: its first picture is near the top, and nothing is out of reach."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.helpers import GROUND, PHONE, open_page, turn_to, wait_for_idle
from tests.browser.idle import wait_for_rest
from tests.browser.story import FIFTEEN

PICTURES = {  # of each part the first picture, and how far down it may begin
    "step?": (".st-key-candidates .gf-chart", 300),
    "attention?panel=overview": (".st-key-overview_cross .gf-chart", 300),
    "attention?panel=walk&layer=2": (".st-key-walk_map .gf-chart", 300),
    "attention?panel=table": (".st-key-head_table_map .gf-chart", 300),
    "inside?inside=lens": (".st-key-lens_table .gf-chart", 300),
    "matters?": (".gf-chart", 300),
}
FOLDED = ("translate", "what_if", "example_menu")


def top_of(page: Page, chart: str) -> float:
    expect(page.locator(f"{chart} .main-svg").first).to_be_visible(timeout=60_000)
    wait_for_rest(page)
    box = page.locator(chart).first.bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.parametrize(
    "where", [pytest.param(where, marks=[pytest.mark.deep] * ("panel" in where)) for where in PICTURES]
)
def test_the_first_picture_is_near_the_top(server, phone, where):
    turn_to(phone, f"{server.url}/{where}&model=zh-en&src={FIFTEEN}&step=5")
    chart, most = PICTURES[where]
    assert top_of(phone, chart) <= most
    bar = phone.locator(".st-key-controls_bar")
    if bar.count():
        assert bar.bounding_box()["height"] <= 44  # one row, which slides
        last = bar.locator(":scope > *").last
        last.scroll_into_view_if_needed()
        box = last.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_who_follows_a_class_has_no_box_to_type_into(server, new_page):
    page = new_page(viewport=PHONE)
    open_page(page, f"{server.url}/attention?model=zh-en&src={FIFTEEN}&room=ACDEFG")
    top_of(page, ".st-key-overview_cross .gf-chart")
    expect(page.locator(".st-key-room_bar")).to_be_visible()
    for key in ("source", *FOLDED):
        expect(page.locator(f".st-key-{key}")).to_be_hidden()
    room, controls = page.locator(".st-key-room_bar").bounding_box(), page.locator(".gf-controls").bounding_box()
    assert controls["y"] + controls["height"] <= room["y"] + 1


def test_the_head_is_one_row_which_unfolds_and_the_controls_stay_at_the_foot(server, new_page):
    page = new_page(viewport=PHONE)
    open_page(page, f"{server.url}/step?model=zh-en&src={FIFTEEN}&step=5")
    top_of(page, ".st-key-candidates .gf-chart")
    head = page.locator(".st-key-page_head")
    assert head.bounding_box()["height"] <= 49
    for key in FOLDED:
        expect(page.locator(f".st-key-{key}")).to_be_hidden()
    more = head.locator("summary")
    right = more.evaluate("one => one.getBoundingClientRect().right")
    for where in (
        ".st-key-page_head .stHtml:has(summary)",
        "[data-testid='stMainMenu']",
    ):  # it is not cut, and nothing covers its edge
        edge = "left" if "Menu" in where else "right"
        assert right <= page.locator(where).first.evaluate(f"one => one.getBoundingClientRect().{edge}")
    more.click()
    for key in FOLDED:
        expect(page.locator(f".st-key-{key}")).to_be_visible()
    controls = page.locator(".gf-stepper .gf-controls")
    place = controls.bounding_box()
    assert place["y"] + place["height"] == pytest.approx(PHONE["height"], abs=1)
    assert place["height"] <= 56
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, main.scrollHeight)")
    wait_for_rest(page)
    assert controls.bounding_box() == place
    last = page.get_by_test_id("stMainBlockContainer").evaluate(
        "main => Math.max(...[...main.querySelectorAll('.gf-chart')].map(one => one.getBoundingClientRect().bottom))"
    )
    assert last <= place["y"]  # nothing of the page ends under them
    page.get_by_label("Next step").click()
    wait_for_idle(page)
    expect(page.locator(".gf-stepper")).to_have_attribute("data-step", "5")


def test_pieces_are_one_row_that_slides_to_where_the_step_is(server, phone):
    turn_to(phone, f"{server.url}/step?model=zh-en&src={FIFTEEN}&step=1")
    top_of(phone, ".st-key-candidates .gf-chart")
    for key in ("End", "Home"):
        phone.locator(".gf-stepper").press(key)
        for row in (".gf-source .gf-pieces", ".gf-target .gf-pieces"):
            tops = phone.locator(f"{row} .gf-chip").evaluate_all("all => all.map(one => one.offsetTop)")
            assert len(set(tops)) == 1
        place = phone.locator(".gf-target .gf-now").bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= PHONE["width"]
    side = phone.locator(".gf-source")
    side.get_by_role("button", name="Show all 15").click()
    tops = side.locator(".gf-chip").evaluate_all("all => all.map(one => one.offsetTop)")
    assert len(set(tops)) > 1
    assert side.locator(".gf-pieces").evaluate("one => one.scrollWidth - one.clientWidth") <= 2
    side.get_by_role("button", name="Show fewer").click()
    expect(side.get_by_role("button", name="Show all 15")).to_be_visible()


def test_the_buttons_in_the_corners_have_the_pages_ground(server, phone):
    turn_to(phone, f"{server.url}/masks?model=zh-en&src={FIFTEEN}")
    phone.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 130)")
    for scheme, ground in GROUND.items():
        phone.emulate_media(color_scheme=scheme)
        for part in ("stApp", "stExpandSidebarButton", "stMainMenu"):
            expect(phone.get_by_test_id(part)).to_have_css("background-color", ground)


def test_the_mark_of_a_space_is_as_large_as_its_piece_and_says_what_it_is(server, tab):
    turn_to(tab, f"{server.url}/step?model=zh-en&src={FIFTEEN}&step=5")
    space = tab.locator(".gf-source .gf-space").first
    expect(space).to_have_attribute("title", "▁ marks a space before the piece.")
    assert space.evaluate(
        "one => ['fontSize', 'top', 'color'].every(name => getComputedStyle(one)[name] === "
        "getComputedStyle(one.parentNode)[name])"
    )


def test_the_name_of_the_app_is_not_broken(server, phone):
    turn_to(phone, f"{server.url}/start?model=zh-en")
    title = phone.get_by_role("heading", name="Glassformer", level=1)
    assert title.bounding_box()["height"] < 2 * title.evaluate("title => parseFloat(getComputedStyle(title).fontSize)")


def test_a_long_menu_of_a_row_ends_in_sight(server, phone):
    turn_to(phone, f"{server.url}/wrong?model=en-fr&mistake=inverted")
    menu = phone.locator("[class*=controls_bar] [data-testid=stSelectbox]").bounding_box()
    assert menu["x"] + menu["width"] <= 0.85 * PHONE["width"]


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


def test_in_a_lesson_the_controls_are_not_under_the_buttons_of_the_corners(server, new_page):
    page = new_page(viewport=PHONE)
    open_page(page, f"{server.url}/step?lesson=one-piece.3&model=en-fr&lang=en")
    top_of(page, ".st-key-candidates .gf-chart")
    page.get_by_test_id("stMain").evaluate("main => main.scrollTo(0, 900)")
    wait_for_rest(page)
    controls = page.locator(".gf-stepper .gf-controls").bounding_box()
    assert controls["y"] < 60  # beside them
    assert page.locator(".gf-stepper").evaluate(COVERED) == []
