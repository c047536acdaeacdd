"""What browser tests share: finding a browser, waiting for Streamlit, screenshots."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, ViewportSize

from tools.browser import REMEDY, find_browser

VIEWPORT: ViewportSize = {"width": 1280, "height": 720}
PHONE: ViewportSize = {"width": 390, "height": 844}
IDLE_MS = 60_000
QUIET_MS = 300
POLL_MS = 40  # looking at each frame would make the browser draw each frame
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

# Between a click and the rerun it causes, Streamlit still says "notRunning" for a moment, so one look is not
# enough: the state has to hold for a while, counted in the page (a polling test would see stale states).
_QUIET = """
quietMs => {
  const app = document.querySelector('[data-testid="stApp"]');
  const settled = app !== null
    && app.dataset.testConnectionState === 'CONNECTED'
    && app.dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-stale="true"]') === null
    && document.querySelector('[data-testid="stSkeleton"], [data-testid="stSpinner"]') === null;
  const now = performance.now();
  if (!settled) { window.__glassformerQuietSince = undefined; return false; }
  window.__glassformerQuietSince ??= now;
  return now - window.__glassformerQuietSince >= quietMs;
}
"""


def require_browser() -> str:
    """Return the path of the machine's browser; fail the test, never skip it, when there is none."""
    executable = find_browser()
    if executable is None:
        pytest.fail(REMEDY, pytrace=False)
    return executable


def wait_for_idle(page: Page, *, timeout_ms: float = IDLE_MS, quiet_ms: float = QUIET_MS) -> None:
    """Return once Streamlit is connected, runs no script and shows nothing stale, for `quiet_ms` on end."""
    page.evaluate("() => { window.__glassformerQuietSince = undefined; }")
    page.wait_for_function(_QUIET, arg=quiet_ms, timeout=timeout_ms, polling=POLL_MS)


def open_page(page: Page, url: str) -> None:
    """Go to an address of the app and wait until it has settled."""
    page.goto(url)
    wait_for_idle(page)


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


def menu_link(page: Page, name: str) -> Locator:
    """The link of the menu that leads to a page."""
    return page.locator(".st-key-menu").get_by_role("link", name=name, exact=True)
