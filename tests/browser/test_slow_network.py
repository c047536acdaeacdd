"""Over a slow network a page shows that it is loading, from the beginning until it has drawn itself."""

import time
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from tests.browser.helpers import PHONE, VIEWPORT, open_page, screenshot
from tests.browser.idle import wait_for_idle

SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
PATIENCE_S = 1.5  # to come from the server, and to fade in
# What can be read where the page will stand.
READ = """() => [...document.querySelectorAll(".gf-loading p, [data-testid=stMain] h1")]
  .filter((one) => one.checkVisibility({ opacityProperty: true })).map((one) => one.textContent).join(" ")"""
CHART = "[data-testid=stMain] .gf-chart"


@contextmanager
def slow_down(page):
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)
    yield
    session.detach()


@pytest.mark.parametrize(
    ("language", "loading", "title", "size", "scheme"),
    [("en", "Loading the page…", "Masks", VIEWPORT, "light"), ("zh", "", "掩码", PHONE, "dark")],
)
def test_at_every_moment_something_can_be_read(server, new_page, language, loading, title, size, scheme):
    page = new_page(shared=True, viewport=size, color_scheme=scheme)
    address = f"{server.url}/masks?model=reverse&src=abc&lang={language}"
    if not page.url.startswith(f"{server.url}/"):
        open_page(page, address)  # scripts are kept from here on
    page.goto("about:blank")
    with slow_down(page):
        page.goto(address, wait_until="commit")
        began, seen = time.monotonic(), []
        while not any(title in text for _, text in seen) and time.monotonic() - began < 60:
            seen.append((time.monotonic() - began, page.evaluate(READ)))
            screenshot(page, f"slow-{language}-{len(seen)}")
            page.wait_for_timeout(50)
    assert title in seen[-1][1]
    assert any(loading in text for _, text in seen)
    assert [when for when, text in seen if when > PATIENCE_S and not text] == []
    expect(page.locator(".gf-loading")).to_be_hidden()
    wait_for_idle(page)
    expect(page.locator(f"{CHART} .main-svg").first).to_be_visible()
    expect(page.locator(f"{CHART}[data-waits]")).to_have_count(0)
    page.goto("about:blank")  # its session speaks that language


def test_a_chart_whose_script_has_not_come_says_so(server, new_page):
    page = new_page(fresh=True)
    held = []
    page.route("**/plotly-*.js", lambda route: held.append(route))
    page.goto(f"{server.url}/masks?model=reverse&src=abc", wait_until="commit")  # all of it never comes
    chart = page.locator(CHART).first
    expect(chart).to_have_attribute("data-waits", "Loading the chart…")
    assert chart.evaluate("one => getComputedStyle(one, '::before').content") == '"Loading the chart…"'
    screenshot(page, "slow-chart")
    for route in held:
        route.continue_()
    expect(chart.locator(".main-svg").first).to_be_visible()
    expect(chart).not_to_have_attribute("data-waits", "Loading the chart…")
