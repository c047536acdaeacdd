"""Names of tiles cover nothing, and axe finds nothing serious on pages, in both themes and on a telephone."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import GROUND, PHONE, comes_to, in_both_windows, point_at, turn_to, wait_for_idle
from tools import check_javascript

SERIOUS = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations.filter(one => ["serious", "critical"].includes(one.impact))
    .map(one => [one.id, ...one.nodes.slice(0, 3)
      .map(node => `${node.target.flat().join(" ")} ${node.html}`.slice(0, 200))]);
}"""


# Names that lie on another, on the title, the numbers of layers and heads, or a tile.
COVERED = """() => {
  const charts = [...document.querySelectorAll(".gf-chart")].filter(one => one.querySelector(".gf-edge"));
  const covered = [];
  for (const chart of charts) {
    const names = [...chart.querySelectorAll(".gf-edge")], rest = ".gtitle, .xtick text, .ytick text, .nsewdrag";
    const boxes = [...names, ...chart.querySelectorAll(rest)].map(one => one.getBoundingClientRect());
    names.forEach((name, i) => boxes.forEach((box, j) => {
      const own = boxes[i], x = Math.min(own.right, box.right) - Math.max(own.left, box.left);
      if (i !== j && x > 1 && Math.min(own.bottom, box.bottom) - Math.max(own.top, box.top) > 1)
        covered.push([name.textContent, j < names.length ? names[j].textContent : String(j - names.length), x]);
    }));
  }
  return [charts.length, covered]; }"""
LONG = "If it rains tomorrow, we will stay at home and read the books that we bought last week."


@pytest.mark.parametrize(
    "address",
    [
        f"attention?model=en-fr&src={LONG}".replace(" ", "+"),
        pytest.param("attention?model=en-fr&src=I+like+coffee.", marks=pytest.mark.deep),
        pytest.param("attention?model=zh-en&lang=zh", marks=pytest.mark.deep),
    ],
)
def test_names_of_all_heads_are_seen_without_pointing_and_cover_nothing(server, page, address):
    turn_to(page, f"{server.url}/{address}")
    for theme, width in in_both_windows(page):
        page.locator(".gf-edge-query").first.wait_for()
        wait_for_idle(page)
        for hovered in (False, True):
            if hovered:
                point_at(page, "overview_encoder", 1, 1)
                page.locator(".gf-edge-at").first.wait_for()
            charts, covered = page.evaluate(COVERED)
            assert charts == 3
            assert covered == [], (theme, width, hovered)
        page.mouse.move(0, 0)


PAGES = ("masks", "lessons", "open", "training", "corpus", "teachers")
# What a phone has of its own.
PALE = """async () => (await axe.run(document, { runOnly: ["color-contrast"] }))
  .violations.flatMap(one => one.nodes).map(one => one.html)"""


SCHEMES = ("dark", "light")
SOME = {"attention": SCHEMES, "step": SCHEMES, "inside": ("dark",)}


@pytest.mark.parametrize(
    "places", [SOME, *(pytest.param({one: SCHEMES}, marks=pytest.mark.deep) for one in (*SOME, *PAGES))]
)
def test_axe_finds_nothing_serious_in_either_theme(server, page, places):
    for where, schemes in places.items():
        turn_to(page, f"{server.url}/{where}?model=reverse&src=abc")
        if not page.evaluate("() => 'axe' in window"):  # a page keeps it while it is turned to other addresses
            assert check_javascript.is_installed() or check_javascript.install()
            page.evaluate((check_javascript.TOOLS / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8"))
        assert page.locator(".st-key-menu nav a").count() > 5  # the menu is looked at, too
        for scheme in schemes:
            page.emulate_media(color_scheme=scheme)
            wait_for_idle(page)
            expect(page.get_by_test_id("stApp")).to_have_css("background-color", GROUND[scheme])
            comes_to(page, lambda: page.evaluate(SERIOUS), [])  # what is fading in is pale for a moment
    page.set_viewport_size(PHONE)
    for where in ("lessons", "room") if len(places) > 1 else ():
        turn_to(page, f"{server.url}/{where}?model=reverse")
        expect(page.get_by_test_id("stCaptionContainer").first).to_be_visible()
        comes_to(page, lambda: page.evaluate(PALE), [])  # it may be fading in
