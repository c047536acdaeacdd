"""Over a slow network a page shows that it is loading, from the beginning until it has drawn itself."""

from contextlib import contextmanager

from playwright.sync_api import expect

from tests.browser.helpers import comes_to, open_page, screenshot
from tests.browser.idle import wait_for_idle

SLOW = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}
# What can be read where the page will stand, and when.
READ = """() => [[...document.querySelectorAll(".gf-loading p, [data-testid=stMain] h1")]
  .filter((one) => one.checkVisibility({ opacityProperty: true })).map((one) => one.textContent).join(" "),
  performance.now()]"""
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
        seen = []

        def reads():
            seen.append(page.evaluate(READ))
            screenshot(page, f"slow-{len(seen)}")
            return "Masks" in seen[-1][0]

        comes_to(page, reads, expected=True, within_ms=60_000)
    first = next(number for number, (text, _) in enumerate(seen) if text)
    assert seen[first][0] == "Loading the page…"
    assert seen[first][1] < seen[-1][1] / 2  # how long all takes is the machine's affair
    assert all(text for text, _ in seen[first:])
    expect(page.locator(".gf-loading")).to_be_hidden()
    wait_for_idle(page)
    expect(page.locator(f"{CHART} .main-svg").first).to_be_visible()
    expect(page.locator(f"{CHART}[data-waits]")).to_have_count(0)
