"""A page that is opened for the first time stands still once it is seen, and asks for nothing that is not there."""

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, VIEWPORT
from tests.browser.idle import IDLE_MS, wait_for_idle, wait_for_rest

MOST = 0.1  # more than this is not good (web.dev/articles/cls)
# What moved without being asked to, and where it was and is: the sum of it all is stricter than that of a window.
WATCH = """() => {
  window.moved = [];
  const told = ({ node, previousRect, currentRect }) =>
    [(node?.textContent ?? "").slice(0, 40), ...[previousRect, currentRect].map((at) => `${at.y} ${at.height}`)];
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) moved.push([one.value, ...one.sources.map(told)]);
  }).observe({ type: "layout-shift", buffered: true });
}"""
# The page that moved most, and one without a sidebar.
WHERE = {"masks": PHONE, "positions?present=1": VIEWPORT}
OTHERS = [
    *("step", "attention", "inside", "positions", "search", "forcing", "compare", "matters", "wrong"),
    *("checkpoints", "lessons", "teachers", "open", "doctor", "training", "sentences", "corpus", "glossary"),
]


@pytest.mark.parametrize(
    ("where", "viewport"),
    [
        pytest.param(where, size, marks=[pytest.mark.deep] * (WHERE.get(where) is not size), id=f"{where}-{name}")
        for where in (*WHERE, *OTHERS)
        for name, size in (("window", VIEWPORT), ("phone", PHONE))
    ],
)
def test_a_page_opened_cold_stands_still(server, new_page, where, viewport):
    page = new_page(viewport=viewport, locale="en-US")  # a context of its own: nothing is kept there
    page.add_init_script(f"({WATCH})()")
    answers = []
    page.on("response", lambda answer: answers.append((answer.status, answer.url)))
    page.goto(f"{server.url}/{where}", wait_until="commit")
    title = page.locator("[data-testid=stMain] h1")  # a presentation has none to be seen
    expect(title).to_be_attached(timeout=3 * IDLE_MS)  # on a busy machine all of this takes long
    expect(page.locator(".gf-loading")).to_have_count(0)
    wait_for_idle(page)
    wait_for_rest(page)
    moved = page.evaluate("moved")
    assert sum(one[0] for one in moved) <= MOST, moved
    assert [one for one in answers if one[0] >= 400] == []
    assert sum("plotly" in url for _, url in answers) == 1  # Streamlit's own copy stays away
