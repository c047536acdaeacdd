"""What browser tests share: finding a browser, waiting for Streamlit, screenshots."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, ViewportSize

from glassformer.components.assets import served
from tests.browser.idle import POLL_MS, wait_for_idle
from tools.browser import REMEDY, find_browser

VIEWPORT: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}
GROUND = {"light": "rgb(251, 250, 247)", "dark": "rgb(20, 27, 35)"}  # of the page: paper and ink
SCREENSHOTS = os.environ.get("GLASSFORMER_SCREENSHOTS")  # a folder; unset, none are taken, as they take minutes

# The sandbox does not start for root; the rest keeps Chromium from calling home.
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The app must work offline: no other machine has an address. (Intercepting requests would also show them, but
    # turns the browser's cache off: every page would fetch all scripts again.)
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def put_scripts(folder: Path) -> None:
    """The scripts of our components, as files for an app that has no server of ours."""
    folder.mkdir()
    for name, content in served().items():
        (folder / name).write_bytes(content)


def require_browser() -> str:
    """Return the path of the machine's browser; fail the test, never skip it, when there is none."""
    executable = find_browser()
    if executable is None:
        pytest.fail(REMEDY, pytrace=False)
    return executable


def open_page(page: Page, url: str) -> None:
    """Go to an address of the app and wait until it has settled."""
    page.goto(url)
    wait_for_idle(page)


# What a click on a link of the menu does (glassformer/components/common/links.js).
_TURN = """there => {
  history.pushState({}, "", there);
  dispatchEvent(new PopStateEvent("popstate", { state: {} }));
}"""


def turn_to(page: Page, url: str) -> None:
    """Show an address in a tab that has the app open already, in a fraction of the time that loading takes.

    What a first visit does, and what was unfolded or zoomed before, is for `open_page`.
    """
    if page.url == url or not page.url.startswith("/".join(url.split("/")[:3]) + "/"):
        open_page(page, url)
        return
    page.evaluate(_TURN, url)
    wait_for_idle(page)


def comes_to(page: Page, read: Callable[[], object], expected: object, *, within_ms: int = 30_000) -> None:
    """Wait until what is read is as expected: much of a page follows a click or a key only after a while."""
    deadline = time.monotonic() + within_ms / 1000
    while (found := read()) != expected and time.monotonic() < deadline:
        page.wait_for_timeout(POLL_MS)
    assert found == expected, f"{found!r} is not {expected!r}"


# Every chart is drawn as wide as its place.
_CHARTS_FIT = """
() => [...document.querySelectorAll(".gf-chart")].every(chart => {
  const drawn = chart.querySelector(".main-svg");
  return drawn === null || Math.abs(drawn.getBoundingClientRect().width - chart.clientWidth) <= 2;
})
"""


def in_both_windows(page: Page) -> Iterator[tuple[str, int]]:
    """Show a page that is open in a light window of 1280 x 720, then in a dark one as narrow as a phone.

    A theme changes no widths, so each size has one.

    Yields:
        The theme and the width, once the page has followed.
    """
    windows: list[tuple[Literal["light", "dark"], ViewportSize]] = [("light", VIEWPORT), ("dark", PHONE)]
    for scheme, size in windows:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        wait_for_idle(page)
        page.wait_for_function(_CHARTS_FIT, polling=POLL_MS)
        yield scheme, size["width"]


def screenshot(page: Page, name: str, *, whole: bool = False, folder: str | None = SCREENSHOTS) -> Path | None:
    """Save what the page shows as `<name>.png` for people to look at; returns that path, None if nobody asked.

    `whole` shows all of a long page: Streamlit scrolls inside the page, so the window is made that high.
    """
    if not folder:
        return None
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = Path(folder) / f"{re.sub(r'[^a-zA-Z0-9_.-]+', '-', name)}.png"
    size = page.viewport_size
    if whole and size:
        height = page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollHeight")
        page.set_viewport_size({"width": size["width"], "height": max(size["height"], height)})
        wait_for_idle(page)
    page.screenshot(path=path)
    if whole and size:
        page.set_viewport_size(size)
    return path


def chart_menu(place: Page | Locator, entry: str) -> None:
    """Choose an entry of a chart's menu, such as "Show this chart large" or "CSV"."""
    place.get_by_role("button", name="Chart: expand, download…").first.click()
    place.get_by_role("menuitem", name=entry).filter(visible=True).click()


def menu_link(page: Page, name: str) -> Locator:
    """The link of the menu that leads to a page; the group that it is in is unfolded."""
    menu = page.locator(".st-key-menu")
    link = page.locator("a").filter(has_text=re.compile(f"^{re.escape(name)}$"))
    folded = menu.locator("details:not([open])").filter(has=link)
    if folded.count():
        folded.locator("summary").click()
    return menu.get_by_role("link", name=name, exact=True)
