"""Over a slow network a page shows that it is loading, from the beginning until it has drawn itself."""

import time
from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.helpers import open_page, screenshot
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


def test_at_every_moment_something_can_be_read(server, new_page):
    page = new_page()
    page.emulate_media(reduced_motion="no-preference")  # what says that it is loading fades in
    address = f"{server.url}/masks?model=reverse&src=abc&lang=en"
    if not page.url.startswith(f"{server.url}/"):
        open_page(page, address)  # scripts are kept from here on
    page.goto("about:blank")
    with slow_down(page):
        page.goto(address, wait_until="commit")
        began, seen = time.monotonic(), []
        while not any("Masks" in text for _, text in seen) and time.monotonic() - began < 60:
            seen.append((time.monotonic() - began, page.evaluate(READ)))
            screenshot(page, f"slow-{len(seen)}")
            page.wait_for_timeout(50)
    assert "Masks" in seen[-1][1]
    assert any("Loading the page…" in text for _, text in seen)
    assert [when for when, text in seen if when > PATIENCE_S and not text] == []
    expect(page.locator(".gf-loading")).to_be_hidden()
    wait_for_idle(page)
    expect(page.locator(f"{CHART} .main-svg").first).to_be_visible()
    expect(page.locator(f"{CHART}[data-waits]")).to_have_count(0)
